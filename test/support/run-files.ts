/**
 * Runs test files in this process, one after another. It repeatedly claims the next file in TEST_FILES
 * (separated by commas) that no other process has claimed. Prints TAP. Afterwards, the process prints any
 * open handles and exits anyway. The files aren't arguments, because tap would include those in the names of
 * folders, which then get too long.
 */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t, { runFile } from './tap.ts'

const { TEST_FILES = '', TEST_TAKEN = '' } = process.env

/**
 * Claims a file. Returns false if another process has. A claimed file has a mark in the directory TEST_TAKEN.
 */
function take(nth: number): boolean {
  try {
    closeSync(openSync(join(TEST_TAKEN, String(nth)), 'wx'))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** How long open handles may keep the process running, in milliseconds. */
const REST_MS = 5_000

t.setTimeout(0)
const taken: string[] = []
for (const [nth, file] of TEST_FILES.split(',').entries()) {
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
