/** Defines the result of a bench row, compares it with its goal, and has the arithmetic of samples. */

export type Figure = {
  row: string
  measure: string
  /** Our result, in `unit`. The ratio is ours to the reference. */
  ours: number
  reference: number
  unit: string
  ratio: number
  goal: string
  met: boolean
  note?: string
}

/**
 * Checks only the bench itself (`--quick`). Everything runs once and briefly, and the results are
 * meaningless.
 */
export const QUICK = process.argv.includes('--quick')

/** Returns `full`, or a twentieth of it with `--quick`. */
export const upTo = (full: number): number => (QUICK ? Math.ceil(full / 20) : full)

/** Thrown for a row that can't be measured. Its message names the package to install. */
export class Missing extends Error {}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Makes a result that should be at least a multiple of its reference. */
export const atLeast = (goal: number, figure: Omit<Figure, 'ratio' | 'goal' | 'met'>): Figure => {
  const ratio = figure.ours / figure.reference
  return { ...figure, ratio, goal: `≥ ${goal} ×`, met: ratio >= goal }
}

/** Makes a result that should be at most a multiple of its reference. */
export const atMost = (goal: number, figure: Omit<Figure, 'ratio' | 'goal' | 'met'>): Figure => {
  const ratio = figure.ours / figure.reference
  return { ...figure, ratio, goal: `≤ ${goal} ×`, met: ratio <= goal }
}

/** Makes a result that other rows refer to. */
export const withoutGoal = (figure: Omit<Figure, 'ratio' | 'goal' | 'met'>): Figure => ({
  ...figure,
  ratio: figure.ours / figure.reference,
  goal: '–',
  met: true,
})

/** Returns the slope of a line fitted to the samples. */
export function slope(samples: readonly { x: number; y: number }[]): number {
  const mean = (pick: (sample: { x: number; y: number }) => number) =>
    samples.reduce((sum, sample) => sum + pick(sample), 0) / samples.length
  const [x, y] = [mean((one) => one.x), mean((one) => one.y)]
  const over = samples.reduce((sum, one) => sum + (one.x - x) * (one.y - y), 0)
  const under = samples.reduce((sum, one) => sum + (one.x - x) ** 2, 0)
  return over / under
}

export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return (performance.now() - started) / 1_000
}
