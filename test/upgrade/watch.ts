/** Measures the longest lock wait, and how long a migration has a lock that blocks others. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import type { Teardown } from '../support/smtp-sink.ts'

/** Milliseconds between two looks. */
const PAUSE = 50

// Locks that block writes, on tables that others see. A table that a file has just created isn't visible to
// others.
const LOOK = `
  select coalesce(max(extract(epoch from clock_timestamp() - waitstart)) filter (where not granted), 0)::float8 as waited,
    coalesce(array_agg(distinct c.relname || ' by ' || a.pid || ' at ' || a.xact_start) filter (
      where granted and a.application_name = 'heliograph migrate: files' and c.relkind in ('r', 'p')
        and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')), '{}') as held
  from pg_locks l join pg_stat_activity a using (pid) left join pg_class c on c.oid = l.relation
  where l.database = (select oid from pg_database where datname = current_database()) or l.database is null`

export type Locks = { waited(): number; held(): number; holder(): string }

/** Looks twenty times a second. @returns the longest of both so far, in seconds. */
export async function watchLocks(t: Teardown, url: string): Promise<Locks> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const longest = { waited: 0, held: 0, holder: '' }
  let since = new Map<string, number>()
  let watching = true
  const watch = async (): Promise<void> => {
    while (watching) {
      const { rows } = await client.query<{ waited: number; held: string[] }>(LOOK)
      const now = performance.now()
      since = new Map((rows[0]?.held ?? []).map((lock) => [lock, since.get(lock) ?? now]))
      longest.waited = Math.max(longest.waited, rows[0]?.waited ?? 0)
      for (const [lock, at] of since) {
        if ((now - at) / 1_000 <= longest.held) continue
        longest.held = (now - at) / 1_000
        longest.holder = lock.split(' by ')[0] ?? ''
      }
      await sleep(PAUSE)
    }
    await client.end()
  }
  const watched = watch()
  t.teardown(() => {
    watching = false
    return watched
  })
  return { waited: () => longest.waited, held: () => longest.held, holder: () => longest.holder }
}
