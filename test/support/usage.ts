/** Reports the CPU time of a run, the machine's idle share, and the slowest files. */
import { cpus } from 'node:os'

const SLOWEST_SHOWN = 20

/** Returns the busy and idle time of all cores since the machine started, in milliseconds. */
export function coreTimes(): { busy: number; idle: number } {
  const times = cpus().map(({ times }) => times)
  const sum = (of: (each: (typeof times)[number]) => number) => times.reduce((all, each) => all + of(each), 0)
  return { busy: sum(({ user, nice, sys, irq }) => user + nice + sys + irq), idle: sum(({ idle }) => idle) }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

/** Starts counting. @returns a function that describes the run, given each file's time in milliseconds */
export function startUsage(): (times: ReadonlyMap<string, number>) => string {
  const before = coreTimes()
  const since = performance.now()
  return (times) => {
    const after = coreTimes()
    const [busy, idle] = [after.busy - before.busy, after.idle - before.idle]
    const waiting = Math.round((idle * 100) / Math.max(1, busy + idle))
    const slowest = [...times].toSorted(([, one], [, other]) => other - one).slice(0, SLOWEST_SHOWN)
    return [
      `took ${seconds(performance.now() - since)}, CPU time ${seconds(busy)} on ${cpus().length} cores, which were idle for ${waiting} % of the time`,
      'slowest files:',
      ...slowest.map(([file, ms]) => `  ${seconds(ms).padStart(8)}  ${file}`),
    ].join('\n')
  }
}
