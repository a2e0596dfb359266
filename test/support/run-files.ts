/**
 * Runs test files in this process, one after another: of those that TEST_FILES names, separated by commas, the next
 * that no other process has taken, until none is left. TAP goes to its output. They are no arguments: tap makes these a
 * part of the names of folders, which then are too long.
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

t.setTimeout(0)
let taken = 0
for (const [nth, file] of TEST_FILES.split(',').entries()) {
  if (!take(nth)) continue
  taken++
  await runFile(file)
}
if (taken === 0) t.plan(0, 'other processes have taken every file')
