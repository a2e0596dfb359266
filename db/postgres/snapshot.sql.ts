/**
 * Restricts a bulk action to the rows that were counted before, unchanged. A row version counts if the transaction
 * that wrote it (xmin) had committed at the snapshot, so that rows need no extra column. Doesn't work on a replica,
 * or for rows written within savepoints (we have none).
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { string } from 'yup'
import { RequestError } from '../errors.ts'
import type { Tx } from './pool.ts'
import { row } from './rows.ts'

const momentRow = row({ seen: string() })

/** Returns the current snapshot. Rows counted afterwards are those in it, or fewer. */
export const seenNow = (tx: Tx) =>
  tx.oneFirst(sql.type(momentRow)`select pg_current_snapshot()::text as seen`)

const NUMBER = /^\d{1,18}$/

/** Returns the first transaction that had not started, and earlier ones that had not ended. Null for invalid text. */
function parseSnapshot(seen: string): { end: string; unended: string[] } | null {
  const [begin = '', end = '', running, ...rest] = seen.split(':')
  const unended = running ? running.split(',') : []
  const isMoment =
    running !== undefined && rest.length === 0 && [begin, end, ...unended].every((each) => NUMBER.test(each))
  return isMoment ? { end, unended } : null
}

/**
 * True if a row hasn't changed since the snapshot. Rows store the lower 32 bits of a transaction ID, and the newest
 * matching one is assumed. If it was an older one, the row may be left out.
 * @param row its alias. @throws RequestError bad_request for an invalid snapshot.
 */
export function wasSeen(row: FragmentSqlToken, seen: string): FragmentSqlToken {
  const known = parseSnapshot(seen)
  if (!known) throw new RequestError('bad_request', 'This form is out of date. Reload the page.')
  const { end, unended } = known
  return sql.fragment`(
    select id < ${end}::bigint and id <> all(${sql.array(unended, 'int8')})
    from (select newest - ((newest - ${row}.xmin::text::bigint) & 4294967295) as id
      from (select greatest(pg_snapshot_xmax(pg_current_snapshot()), pg_current_xact_id_if_assigned())::text::bigint
        as newest) now) version)`
}
