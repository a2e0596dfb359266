/**
 * Runs the test files that TEST_FILES names, separated by commas, in this process, one after another. TAP goes to its
 * output. They are no arguments: tap makes these a part of the names of folders, which then are too long.
 */
import { runFile } from './tap.ts'

for (const file of (process.env.TEST_FILES ?? '').split(',')) runFile(file)
