/** Formats shares on pages. A no-break space keeps the sign on the line of its number. */
import * as plain from '../../../db/percent.ts'

export const keepPercents = (words: string): string => words.replaceAll(/(?<=\d) %/g, '\u00a0%')

/** Formats a share with one decimal, or with two below 1 %. */
export const percent = (share: number): string => keepPercents(plain.percent(share))

/** Formats the progress of a task in percent, rounded down. */
export const progressPercent = (done: number, of: number): string =>
  keepPercents(plain.progressPercent(done, of))
