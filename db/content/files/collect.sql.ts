/**
 * Statements that orphan files, so that they can't be used any longer, and delete them. A file is checked
 * again with its row locked, so that a concurrent use keeps it.
 */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { refRow, row } from '../../postgres/rows.ts'

/** Whether a live upload needs a file `f`. */
const isUploaded = sql.fragment`coalesce(f.kept_until > service_time(), false)`

/** Lets go what no upload keeps any more, at most `limit` files. @returns how many. */
export async function releaseFiles(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    update files set kept_until = null where (team_id, id) in (
      select team_id, id from files where kept_until <= service_time() limit ${limit} for update skip locked)`)
  return rowCount
}

/**
 * Files that nobody has used since `before` and nobody needs, the oldest first. Those that uploads keep are not in the
 * index: it would have to be walked past all of them each time. What is needed is found by the emails
 * that still have to be delivered: a content may have gone out with millions that are not.
 */
export const unusedFiles = (tx: Tx, before: Date, limit: number) =>
  tx.any(sql.type(refRow)`
    with needed as materialized (
      select distinct e.team_id, n.sha256
      from (
        select team_id, id from email_states where unfinished
        union all select team_id, id from email_states where due_at is not null) e
      cross join lateral (
        select sha256 from email_files where team_id = e.team_id and email_id = e.id offset 0) n
    )
    select team_id, id from files f
    where state = 'ready' and kept_until is null and last_used_at < ${sql.timestamp(before)}
      and not exists (select from needed n where n.team_id = f.team_id and n.sha256 = f.sha256)
    order by last_used_at limit ${limit}`)

const sizeRow = row({ size: number() })

/**
 * Orphans those of the files that are still unused: whatever has come to need one since they were found has written
 * its time of use first, and `accepted` is the first id that mail accepted meanwhile can have. The team's account is
 * locked. @returns their sizes.
 */
export const orphanUnused = (
  tx: Tx,
  teamId: string,
  ids: readonly string[],
  { before, accepted }: { before: Date; accepted: string },
) =>
  tx.any(sql.type(sizeRow)`
    with needed as materialized (
      select n.sha256
      from email_states e cross join lateral (
        select sha256 from email_files where team_id = ${teamId} and email_id = e.id offset 0) n
      where e.team_id = ${teamId} and e.id >= ${accepted} and (e.unfinished or e.due_at is not null)
    ), unused as materialized (
      select id from files f
      where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})
        and state = 'ready' and last_used_at < ${sql.timestamp(before)} and not ${isUploaded}
        and not exists (select from needed n where n.sha256 = f.sha256)
      for update skip locked
    )
    update files f set state = 'orphaned' from unused u where f.team_id = ${teamId} and f.id = u.id
    returning f.size`)

const contentRow = row({ sha256: string() })

/** Takes the contents away from emails that say nothing any more. @returns them. */
export async function detachFiles(tx: Tx, teamId: string, emailIds: readonly string[]) {
  const contents = await tx.anyFirst(sql.type(contentRow)`
    delete from email_files where team_id = ${teamId} and email_id = any(${sql.array(emailIds, 'uuid')})
    returning encode(sha256, 'hex') as sha256`)
  return [...new Set(contents)]
}

/**
 * Orphans those of the contents that no email and no live upload refers to. The team's account is locked. What is just
 * being used is passed over.
 */
export const orphanDetached = (tx: Tx, teamId: string, contents: readonly string[]) =>
  tx.any(sql.type(sizeRow)`
    with alone as materialized (
      select id from files f
      where team_id = ${teamId} and state = 'ready'
        and sha256 in (select decode(w, 'hex') from unnest(${sql.array(contents, 'text')}) w)
        and not exists (select from email_files n where n.team_id = f.team_id and n.sha256 = f.sha256)
        and not ${isUploaded}
      for update skip locked
    )
    update files f set state = 'orphaned' from alone a where f.team_id = ${teamId} and f.id = a.id
    returning f.size`)

/** Deletes some of the orphaned files, with their bytes. @returns how many. */
export async function deleteOrphans(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from files where (team_id, id) in (
      select team_id, id from files where state = 'orphaned' limit ${limit} for update skip locked)`)
  return rowCount
}

/** Deletes uploads that have expired, at most `limit`. @returns how many. */
export async function deleteExpiredUploads(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from uploads where (team_id, id) in (
      select team_id, id from uploads where expires_at <= service_time() limit ${limit})`)
  return rowCount
}
