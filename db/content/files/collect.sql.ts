/**
 * Statements that orphan files, so that they can't be used any longer, and delete them. A file is checked again with
 * its row locked. A concurrent use keeps it.
 */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { refRow, row } from '../../postgres/rows.ts'

/** True if an active upload needs a file `f`. */
const isUploaded = sql.fragment`coalesce(f.kept_until > service_time(), false)`

/** @returns how many files of expired uploads are no longer kept. */
export async function releaseFiles(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    update files set kept_until = null where (team_id, id) in (
      select team_id, id from files where kept_until <= service_time() limit ${limit} for update skip locked)`)
  return rowCount
}

/**
 * Returns files that weren't used since `before` and that no unfinished email needs, oldest first. Needed files are
 * found through unfinished emails, because millions of finished ones can refer to the same file.
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
 * Orphans the files that are still unused: no later use, and no email with an ID of at least `accepted`. The caller
 * has locked the team's account. @returns their sizes.
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

/** Detaches the files of purged emails. @returns their hashes. */
export async function detachFiles(tx: Tx, teamId: string, emailIds: readonly string[]) {
  const contents = await tx.anyFirst(sql.type(contentRow)`
    delete from email_files where team_id = ${teamId} and email_id = any(${sql.array(emailIds, 'uuid')})
    returning encode(sha256, 'hex') as sha256`)
  return [...new Set(contents)]
}

/**
 * Orphans files that no email and no active upload refers to. Skips files in use. The caller has locked the team's
 * account.
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

/** Deletes some orphaned files with their bytes. @returns how many. */
export async function deleteOrphans(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from files where (team_id, id) in (
      select team_id, id from files where state = 'orphaned' limit ${limit} for update skip locked)`)
  return rowCount
}

/** Deletes up to `limit` expired uploads. @returns how many. */
export async function deleteExpiredUploads(tx: Tx, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from uploads where (team_id, id) in (
      select team_id, id from uploads where expires_at <= service_time() limit ${limit})`)
  return rowCount
}
