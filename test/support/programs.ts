/** Runs optional programs of the machine. Tests that need a missing one are skipped with the reason. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program and waits for its end. @throws Error with its output if it fails. */
export const runProgram = promisify(execFile)

/** Returns why a program can't be used here. Null if it can. @param packaged its Debian package. */
export const programMissing = (program: string, packaged: string): Promise<string | null> =>
  runProgram('/bin/sh', ['-c', `command -v ${program}`]).then(
    () => null,
    () => `${program} is not installed (Debian: apt-get install -y ${packaged})`,
  )
