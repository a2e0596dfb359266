/** Detects processes of 0.1.0, which store complete posts of WhatsApp (migration 0009). */
import { sql } from 'slonik'
import { boolean, object } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

/** A killed process is counted as running for this long after its last heartbeat, in seconds. */
const LAST_SEEN_S = 60

const KIND = 'whatsapp_texts'

const oldWebRow = row({
  is_running: boolean(),
  /** True if a 0.1.0 web process may have stored texts since the last purge. Null if none was ever seen. */
  has_run: boolean().nullable(),
})

export const oldWeb = (tx: Tx) =>
  tx.one(sql.prepared('old_web', oldWebRow)`
    select exists (
        select from processes where kind = 'web' and version is null
          and seen_at > now() - make_interval(secs => ${LAST_SEEN_S})) as is_running,
      (select done_until = '-infinity' from upkeep where kind = ${KIND}) as has_run`)

/** Records a purge of the texts. `again`: purge once more when no process of 0.1.0 is running. */
export const recordPurge = (tx: Tx, { again }: { again: boolean }) =>
  tx.query(sql.type(object())`
    insert into upkeep (kind, done_until) values (${KIND}, ${again ? '-infinity' : 'now'}::timestamptz)
    on conflict (kind) do update set done_until = excluded.done_until`)
