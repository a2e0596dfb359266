/**
 * Queries on files, their chunks, uploads, and the files of emails. A team has one `ready` file per content, by
 * SHA-256 in lower-case hex. Changes of a team's storage need its account's lock.
 */
import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row, rowsOf } from '../../postgres/rows.ts'
import { CHUNK } from '../../validation/files.ts'

export type FileRef = { team_id: string; sha256: string }

const FILE = { team_id: 'uuid', sha256: 'text' }

const contentRow = row({ team_id: string(), sha256: string() })

/** Updates the last use of ready files if it is more than an hour old. A used file isn't deleted for a day. */
export async function touchFiles(tx: Tx, refs: readonly FileRef[]): Promise<void> {
  // Locked in one order, because two sends can use the same files.
  await tx.query(sql.prepared('touch_files', object())`
    with due as (
      select f.team_id, f.id from files f join ${rowsOf('w', FILE, refs)}
        on f.team_id = w.team_id and f.sha256 = decode(w.sha256, 'hex')
      where f.state = 'ready' and f.last_used_at < service_time() - interval '1 hour'
      order by f.team_id, f.id for no key update of f
    )
    update files f set last_used_at = service_time()
    from due where f.team_id = due.team_id and f.id = due.id`)
}

/** Like `readyFiles`, and updates their time of use. */
export async function usedFiles(tx: Tx, refs: readonly FileRef[]) {
  await touchFiles(tx, refs)
  return readyFiles(tx, refs)
}

export const readyFiles = (tx: Tx, refs: readonly FileRef[]) =>
  tx.any(sql.prepared('ready_files', contentRow)`
    select w.team_id, w.sha256 from ${rowsOf('w', FILE, refs)}
      join files f on f.team_id = w.team_id and f.sha256 = decode(w.sha256, 'hex') and f.state = 'ready'`)

export type LoadingFile = { id: string; sha256: string; size: number }

export type Chunk = { file_id: string; part: number; bytes: Uint8Array }

const commas = sql.fragment`, `
const valuesOf = (teamId: string, chunks: readonly Chunk[]) =>
  sql.join(
    chunks.map(
      ({ file_id, part, bytes }) =>
        sql.fragment`(${teamId}::uuid, ${file_id}::uuid, ${part}::int4, ${sql.binary(Buffer.from(bytes))})`,
    ),
    commas,
  )

export const insertLoading = (tx: Tx, teamId: string, files: readonly LoadingFile[]) =>
  tx.query(sql.type(object())`
    insert into files (team_id, id, sha256, size, created_at, last_used_at)
    select ${teamId}, w.id, decode(w.sha256, 'hex'), w.size, service_time(), service_time()
    from ${rowsOf('w', { id: 'uuid', sha256: 'text', size: 'int8' }, files)}`)

export const insertUnknown = (tx: Tx, teamId: string, id: string) =>
  tx.query(sql.type(object())`
    insert into files (team_id, id, created_at, last_used_at) values (${teamId}, ${id}, service_time(), service_time())`)

export const completeLoading = (tx: Tx, teamId: string, { id, sha256, size }: LoadingFile) =>
  tx.query(sql.type(object())`
    update files set sha256 = decode(${sha256}, 'hex'), size = ${size} where team_id = ${teamId} and id = ${id}`)

/** Stores chunks of files, and updates their time of use, so that a slow upload doesn't count as abandoned. */
export async function insertChunks(tx: Tx, teamId: string, chunks: readonly Chunk[]): Promise<void> {
  const ids = [...new Set(chunks.map(({ file_id }) => file_id))]
  await tx.query(sql.type(object())`
    with used as (
      update files set last_used_at = service_time()
      where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})
        and last_used_at < service_time() - interval '5 minutes'
    )
    insert into file_chunks (team_id, file_id, part, bytes) values ${valuesOf(teamId, chunks)}`)
}

/** Deletes files that weren't published. */
export const dropLoading = (tx: Tx, teamId: string, ids: readonly string[]) =>
  tx.query(sql.type(object())`
    delete from files where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and state = 'loading'`)

type Loaded = { team_id: string; id: string }

/** Publishes files and returns a row for each. The caller has locked the teams' accounts. */
const publishing = (files: readonly Loaded[]) => sql.fragment`
  update files f set state = 'ready', last_used_at = service_time()
  from ${rowsOf('w', { team_id: 'uuid', id: 'uuid' }, files)}
  where f.team_id = w.team_id and f.id = w.id and f.state = 'loading'
  returning 1`

/** Publishes files. @returns how many. */
export const publishFiles = (tx: Tx, files: readonly Loaded[]) =>
  tx.oneFirst(sql.prepared('publish_files', countRow)`
    with published as (${publishing(files)}) select count(*)::int as count from published`)

export type AttachedFiles = {
  newFiles: readonly Loaded[]
  needs: readonly (FileRef & { email_id: string })[]
}

/** Parts of the statement that stores emails. `published` has a row for each published file. */
export const attaching = ({ newFiles, needs }: AttachedFiles) => sql.fragment`
  published as (${publishing(newFiles)}), noted as (
    insert into email_files (team_id, email_id, sha256)
    select w.team_id, w.email_id, decode(w.sha256, 'hex')
    from ${rowsOf('w', { ...FILE, email_id: 'uuid' }, needs)}
    on conflict do nothing
  )`

const uploadRow = row({
  id: string(),
  filename: string(),
  content_type: string(),
  size: number(),
  sha256: string(),
  expires_at: string(),
})
export type Upload = InferType<typeof uploadRow>

const uploadColumns = sql.fragment`
  id, filename, content_type, size, encode(sha256, 'hex') as sha256, expires_at`

/** Returns the team's uploads that haven't expired. */
export const uploadsByIds = (tx: Tx, teamId: string, ids: readonly string[]) =>
  tx.any(sql.type(uploadRow)`
    select ${uploadColumns} from uploads
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and expires_at > service_time()`)

/** Inserts an upload of a ready file, which is kept for `days`. The caller has locked the team's account. */
export const insertUpload = (
  tx: Tx,
  teamId: string,
  { id, filename, content_type, size, sha256 }: Omit<Upload, 'expires_at'>,
  days: number,
) =>
  tx.one(sql.type(uploadRow)`
    with kept as (
      update files set kept_until = greatest(kept_until, service_time() + make_interval(days => ${days}))
      where team_id = ${teamId} and sha256 = decode(${sha256}, 'hex') and state = 'ready'
    )
    insert into uploads (team_id, id, filename, content_type, size, sha256, created_at, expires_at)
    values (${teamId}, ${id}, ${filename}, ${content_type}, ${size}, decode(${sha256}, 'hex'), service_time(),
      service_time() + make_interval(days => ${days}))
    returning ${uploadColumns}`)

const pieceRow = row({ bytes: mixed<Buffer<ArrayBuffer>>() })

/**
 * Bytes per value: complete base64 lines, and less than one read of a socket. pg needs up to three times the memory
 * for larger values, and V8 collected the heap up to 24 times in sixteen emails of 20 MB.
 */
const PIECE_BYTES = CHUNK / 5

/** Returns the bytes of some chunks in pieces, starting at chunk `from`. Empty if the file was deleted. */
export async function piecesOfChunks(
  tx: Tx,
  { team_id, sha256 }: FileRef,
  { from, count }: { from: number; count: number },
): Promise<readonly Buffer<ArrayBuffer>[]> {
  const literal = (value: string | number) => sql.literalValue(String(value))
  const rows = await tx.any(sql.type(pieceRow)`
    copy (
      select substring(c.bytes from at + 1 for ${literal(PIECE_BYTES)})
      from files f join file_chunks c on c.team_id = f.team_id and c.file_id = f.id
        cross join lateral generate_series(0, length(c.bytes) - 1, ${literal(PIECE_BYTES)}) at
      where f.team_id = ${literal(team_id)} and f.sha256 = decode(${literal(sha256)}, 'hex') and f.state = 'ready'
        and c.part between ${literal(from)} and ${literal(from + count - 1)}
      order by c.part, at
    ) to stdout (format binary)`)
  return rows.map(({ bytes }) => bytes)
}

/** Deletes files of calls and uploads that were abandoned before this time. @returns how many. */
export async function deleteAbandonedFiles(tx: Tx, before: Date): Promise<number> {
  const { rowCount } = await tx.query(sql.type(object())`
    delete from files
    where state = 'loading' and created_at < ${sql.timestamp(before)} and last_used_at < ${sql.timestamp(before)}`)
  return rowCount
}

const attachedRow = contentRow.concat(row({ id: string(), filename: string() }))

export const filesOfEmails = (tx: Tx, emails: readonly { team_id: string; id: string }[]) =>
  tx.any(sql.type(attachedRow)`
    select e.team_id, e.id, a ->> 'filename' as filename, a ->> 'sha256' as sha256
    from accepted_emails e cross join lateral json_array_elements(e.attachments) a
    where e.attachments is not null and (e.team_id, e.id) in (
      select * from ${rowsOf('w', { team_id: 'uuid', id: 'uuid' }, emails)})`)
