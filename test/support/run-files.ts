/**
 * Runs test files in this process, one after another: of those that TEST_FILES names, separated by commas, the next
 * that no other process has taken, until none is left. TAP goes to its output. They are no arguments: tap makes these a
 * part of the names of folders, which then are too long.
 * Promises: once they are done it ends, whatever they left, and says what that was.
 */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t, { runFile } from './tap.ts'

const { TEST_FILES = '', TEST_TAKEN = '' } = process.env

/** Whether this process is the first to want a file: each that is taken leaves a mark in the directory TEST_TAKEN. */
function take(nth: number): boolean {
  try {
    closeSync(openSync(join(TEST_TAKEN, String(nth)), 'wx'))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** How long what files left may keep the process. */
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
