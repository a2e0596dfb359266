/** Runs a process in a control group with a memory limit, like a container. Needs root. */
import { chmod, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { until } from './worker.ts'

const V1 = '/sys/fs/cgroup/memory'
const V2 = '/sys/fs/cgroup'

/** Creates a control group. @returns its path and files, or null if this user isn't allowed to. */
async function makeGroup(): Promise<{ path: string; limit: string; peak: string } | null> {
  const name = `heliograph-test-${process.pid}`
  for (const { root, limit, peak } of [
    { root: V1, limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' },
    { root: V2, limit: 'memory.max', peak: 'memory.peak' },
  ]) {
    const path = join(root, name)
    const made = await mkdir(path).then(
      () => true,
      () => false,
    )
    if (!made) continue
    const has = await readFile(join(path, limit)).then(
      () => true,
      () => false,
    )
    if (has) return { path, limit, peak }
    await rmdir(path)
  }
  return null
}

/**
 * Limits memory to `mib`. @returns a program that runs Node in the group, or null if no group can be created.
 */
export async function limitedNode(t: Test, mib: number) {
  const group = await makeGroup()
  if (group === null) return null
  const procs = join(group.path, 'cgroup.procs')
  t.teardown(() =>
    until('the group is empty', () =>
      rmdir(group.path).then(
        () => true,
        () => false,
      ),
    ),
  )
  await writeFile(join(group.path, group.limit), String(mib * 1024 * 1024))
  const execPath = join(t.testdir(), 'node')
  await writeFile(execPath, `#!/bin/sh\necho $$ > ${procs}\nexec ${process.execPath} "$@"\n`)
  await chmod(execPath, 0o755)
  return {
    execPath,
    peak: async () => Number(await readFile(join(group.path, group.peak), 'utf8')) / 1024 ** 2,
  }
}
