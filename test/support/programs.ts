/** Programs of the machine that some tests ask for, and leave out with words where they are missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Why a program cannot be used here, or null when it can. @param packaged the Debian package that has it. */
export const programMissing = (program: string, packaged: string): Promise<string | null> =>
  run('/bin/sh', ['-c', `command -v ${program}`]).then(
    () => null,
    () => `${program} is not installed (Debian: apt-get install -y ${packaged})`,
  )
