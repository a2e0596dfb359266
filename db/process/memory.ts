/** The memory that this process can use: from a setting, otherwise the limit of its container. */
import { setFlagsFromString } from 'node:v8'
import { SettingsFault } from './config.ts'

const MIB = 1024 * 1024

/** The least that a web process and a worker need, in bytes: 256 MB. */
const MIN_MEMORY = 256_000_000
/** From this limit on, in bytes, bodies and attachments have their documented capacity. */
const FULL_MEMORY = 512_000_000

/** Returns the limit in bytes, or infinity. @param setting in MiB. */
export const memoryLimit = (setting?: number): number =>
  setting === undefined ? process.constrainedMemory() || Number.POSITIVE_INFINITY : setting * MIB

/** Scales an amount by a limit: `least` with MIN_MEMORY, `full` from 512 MB on. */
export function byMemory(limit: number, least: number, full: number): number {
  const part = (limit - MIN_MEMORY) / (FULL_MEMORY - MIN_MEMORY)
  return least + (full - least) * Math.min(Math.max(part, 0), 1)
}

/** How much V8 lets a heap grow before it collects garbage, in percent, where memory is little. */
const HEAP_GROWING_PERCENT = 20

/** Has V8 collect garbage earlier if memory is little: --max-old-space-size can't be changed in a running process. */
export function saveMemory(limit: number): void {
  if (limit < FULL_MEMORY) setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`)
}

/** How long, and up to which load, a process must be idle before it collects the garbage of its start. */
const [IDLE_MS, IDLE_SHARE] = [5_000, 0.05]

/**
 * Collects the garbage of the start, about 16 MB, once the process is idle, and returns the free pages to the system. A
 * busy process reuses that memory. Without Node's --expose-gc it does nothing.
 */
export function collectWhenIdle(): void {
  let last = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    if (utilization > IDLE_SHARE) return
    clearInterval(timer)
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  }, IDLE_MS).unref()
}

const isTooLow = (limit: number): boolean => limit < MIN_MEMORY
const fault = (limit: number): string =>
  `MEMORY_LIMIT_MB: this process can use ${Math.floor(limit / MIB)} MiB of memory and needs ${Math.ceil(MIN_MEMORY / MIB)} MiB. Raise the container's limit`

/** Warns about a limit that is too low for a web process, which starts nevertheless. */
export const memoryWarnings = (limit: number): string[] => (isTooLow(limit) ? [fault(limit)] : [])

/** Stops a worker at the start. @throws SettingsFault if the limit is too low for it */
export function assertMemory(limit: number): void {
  if (isTooLow(limit)) throw new SettingsFault([fault(limit)])
}
