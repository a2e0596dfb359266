/** Chooses the folder and settings of a run's own PostgreSQL, whose data are temporary. */
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

// A tmpfs, with its type number in statfs(2). A run uses a few hundred megabytes of it.
const MEMORY = { directory: '/dev/shm', type: 0x01021994, least: 4 * 1024 ** 3 }
// The data are thrown away, and many test processes connect side by side.
export const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Nothing lives long enough for it to be of use, and it starts a process in each of many databases.
  autovacuum: 'off',
  max_connections: '400',
}

/**
 * Where files are quickest to make and delete: tests make hundreds of databases of 700 files each, and ext4 passes over
 * all the inodes that were deleted within the last minute, one by one, for each new file.
 */
export async function quickParent(): Promise<string> {
  const { directory, type, least } = MEMORY
  const found = await statfs(directory).catch(() => null)
  if (found?.type !== type) return tmpdir()
  return Math.min(found.bavail * found.bsize, process.availableMemory()) < least ? tmpdir() : directory
}
