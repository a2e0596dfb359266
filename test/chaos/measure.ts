/** Measures the memory and descriptors of processes, as counted by the kernel (Linux). */
import { readdir, readFile } from 'node:fs/promises'
import type { Member } from './world.ts'

/** Returns the resident set of a process in MB. 0 if it has ended. */
export async function resident(member: Member): Promise<number> {
  const status = await readFile(`/proc/${member.pid()}/status`, 'utf8').catch(() => '')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024
}

/** Returns the largest resident set of these processes in MB, rounded. */
export const largest = async (members: readonly Member[]): Promise<number> =>
  Math.round(Math.max(0, ...(await Promise.all(members.map(resident)))))

/** Returns how many files, sockets and similar a process has open. */
export const descriptors = async (member: Member): Promise<number> =>
  (await readdir(`/proc/${member.pid()}/fd`).catch(() => [])).length
