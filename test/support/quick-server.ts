/** Chooses the folder and settings of a run's own PostgreSQL, whose data is temporary. */
import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

// A tmpfs, with its type number in statfs(2). A run uses a few hundred megabytes of it.
const MEMORY = { directory: '/dev/shm', type: 0x01021994, least: 4 * 1024 ** 3 }
// The data is temporary, and many test processes are connected at once.
export const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Databases are deleted too soon to need it, and it would start a process for each.
  autovacuum: 'off',
  max_connections: '400',
}

/** Also for the embedded server of a run. Its socket file is in its data directory. */
export const RUN_SETTINGS = { ...SETTINGS, unix_socket_directories: '.', file_copy_method: 'clone' }

/**
 * Returns the folder with the fastest file creation. Tests create hundreds of databases with 700 files each.
 * On ext4, each new file scans all inodes deleted within the last minute.
 */
export async function quickParent(): Promise<string> {
  const { directory, type, least } = MEMORY
  const found = await statfs(directory).catch(() => null)
  if (found?.type !== type) return tmpdir()
  return Math.min(found.bavail * found.bsize, process.availableMemory()) < least ? tmpdir() : directory
}
