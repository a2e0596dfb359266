/** Converts the times of a filter to and from the JSON of a background job. Pure. */

type Timed = { from?: Date | undefined; to?: Date | undefined }
export type Stored<F extends Timed> = Omit<F, 'from' | 'to'> & {
  from?: string | undefined
  to?: string | undefined
}

export const storedTimes = <F extends Timed>({ from, to, ...filter }: F): Stored<F> => ({
  ...filter,
  ...(from === undefined ? {} : { from: from.toISOString() }),
  ...(to === undefined ? {} : { to: to.toISOString() }),
})

export const revivedTimes = <F extends { from?: string | undefined; to?: string | undefined }>({
  from,
  to,
  ...filter
}: F) => ({
  ...filter,
  ...(from === undefined ? {} : { from: new Date(from) }),
  ...(to === undefined ? {} : { to: new Date(to) }),
})
