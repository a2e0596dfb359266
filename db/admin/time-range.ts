/** The flags of a time range. The names that 0.1.0 has for them, `--from` and `--to`, still work. */

import { type Command, Option } from 'commander'
import { instant } from './input.ts'

export type TimeRangeOptions = Partial<Record<'since' | 'until' | 'from' | 'to', Date>>

const formerFlag = (name: string): Option => new Option(`${name} <time>`).argParser(instant).hideHelp()

export const sinceFlag = (command: Command, about: string): Command =>
  command.option('--since <time>', about, instant)

/** Adds `--until` and the flags of 0.1.0. */
export const untilFlag = (command: Command, about: string): Command =>
  command
    .option('--until <time>', about, instant)
    .addOption(formerFlag('--from'))
    .addOption(formerFlag('--to'))

const later = (one?: Date, other?: Date): Date | undefined =>
  one && other && one > other ? one : (other ?? one)
const earlier = (one?: Date, other?: Date): Date | undefined =>
  one && other && one < other ? one : (other ?? one)

/** Returns the range that all given flags allow. */
export const toRange = ({ since, until, from, to }: TimeRangeOptions) => ({
  from: later(since, from),
  to: earlier(until, to),
})
