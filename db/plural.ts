/** Formats a count with its noun, such as `1 email` or `1,200 emails`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
