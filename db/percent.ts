/** Formats shares, the same way everywhere. */

/**
 * Formats a share with one decimal, or with two below 1 %. Exact 0 and 100 % have none, and no other share is rounded
 * to them.
 */
export function percent(share: number): string {
  const exact = share * 100
  if (exact === 0 || exact === 100) return `${exact} %`
  if (exact < 1) return `${Math.max(exact, 0.01).toFixed(2)} %`
  return `${(exact < 100 ? Math.min(exact, 99.9) : exact).toFixed(1)} %`
}

/** Formats the progress of a task in percent, rounded down. */
export const progressPercent = (done: number, of: number): string =>
  `${of === 0 ? 100 : Math.floor((done * 100) / of)} %`
