/**
 * Runs test files in this process, one after another. It repeatedly claims the next file in TEST_FILES
 * (separated by commas) that no other process has claimed. Prints TAP. Afterwards, the process prints any
 * open handles and exits anyway. The files aren't arguments, because tap would include those in the names of
 * folders, which then get too long.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { runFile } from './tap.ts'
import { coreTimes } from './usage.ts'

const { TEST_FILES = '', TEST_TAKEN = '', TEST_SPARE } = process.env

const markOf = (nth: number): string => join(TEST_TAKEN, String(nth))

/**
 * Claims a file. Returns false if another process has. A claimed file has a mark in the directory TEST_TAKEN.
 */
function take(nth: number): boolean {
  try {
    closeSync(openSync(markOf(nth), 'wx'))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** The share of the cores' time that must be idle, over this many milliseconds. */
const [LEAST_IDLE, LOOK_MS] = [0.2, 500]
/** The maximum number of looks, because the other processes may have died. */
const MOST_LOOKS = 20

/** Waits until the cores are partly idle, or another process has claimed the file. */
async function awaitIdleCores(nth: number): Promise<void> {
  for (let look = 0; look < MOST_LOOKS && !existsSync(markOf(nth)); look += 1) {
    const before = coreTimes()
    await sleep(LOOK_MS)
    const after = coreTimes()
    const [idle, busy] = [after.idle - before.idle, after.busy - before.busy]
    if (idle > LEAST_IDLE * (idle + busy)) return
  }
}

/** How long open handles may keep the process running, in milliseconds. */
const REST_MS = 5_000

t.setTimeout(0)
const taken: string[] = []
const files = [...TEST_FILES.split(',').entries()]
for (const [nth, file] of TEST_SPARE ? files.reverse() : files) {
  if (TEST_SPARE) await awaitIdleCores(nth)
  if (!take(nth)) continue
  taken.push(file)
  await runFile(file)
}
if (taken.length === 0) t.plan(0, 'other processes have taken every file')
setTimeout(() => {
  const kept = [...new Set(process.getActiveResourcesInfo())].join(', ')
  process.stderr.write(`a process is done and does not end (${kept}): ${taken.join(', ')}\n`)
  t.end()
  process.exit()
}, REST_MS).unref()
