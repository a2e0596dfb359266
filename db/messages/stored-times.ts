/** Converts the times of a filter to and from the JSON of a background job. Pure. */

type Times<T> = { from?: T | undefined; to?: T | undefined }
export type Stored<F extends Times<Date>> = Omit<F, 'from' | 'to'> & Times<string>

export const storedTimes = <F extends Times<Date>>({ from, to, ...filter }: F): Stored<F> => ({
  ...filter,
  ...(from === undefined ? {} : { from: from.toISOString() }),
  ...(to === undefined ? {} : { to: to.toISOString() }),
})

export const revivedTimes = <F extends Times<string>>({ from, to, ...filter }: F) => ({
  ...filter,
  ...(from === undefined ? {} : { from: new Date(from) }),
  ...(to === undefined ? {} : { to: new Date(to) }),
})
