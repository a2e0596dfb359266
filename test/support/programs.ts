/** Programs of the machine that some tests ask for, and leave out with words where they are missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program to its end. @throws Error when it fails, with what it wrote. */
export const runProgram = promisify(execFile)

/** Why a program cannot be used here, or null when it can. @param packaged the Debian package that has it. */
export const programMissing = (program: string, packaged: string): Promise<string | null> =>
  runProgram('/bin/sh', ['-c', `command -v ${program}`]).then(
    () => null,
    () => `${program} is not installed (Debian: apt-get install -y ${packaged})`,
  )
