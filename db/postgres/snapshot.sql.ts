/**
 * What was there at a moment: somebody who was asked about a number of rows does something to those alone, as they
 * were when they were counted. A version of a row is known by the transaction that wrote it (xmin), and was there if
 * that had committed by then; so a moment is a few numbers that a form can carry, and rows need no column for it.
 * Must not be asked of a replica, nor of rows written within savepoints (we have none): neither has all transactions.
 */

import { type FragmentSqlToken, sql } from 'slonik'
import { string } from 'yup'
import { RequestError } from '../errors.ts'
import type { Tx } from './pool.ts'
import { row } from './rows.ts'

const momentRow = row({ seen: string() })

/** The moment of this statement: rows that are counted after it are those that were there, or fewer. */
export const seenNow = (tx: Tx) =>
  tx.oneFirst(sql.type(momentRow)`select pg_current_snapshot()::text as seen`)

const NUMBER = /^\d{1,18}$/

/** The first transaction that had not begun by then, and those before it that had not ended; null for anything else. */
function transactionsOf(seen: string): { end: string; unended: string[] } | null {
  const [begin = '', end = '', running, ...rest] = seen.split(':')
  const unended = running ? running.split(',') : []
  const isMoment =
    running !== undefined && rest.length === 0 && [begin, end, ...unended].every((each) => NUMBER.test(each))
  return isMoment ? { end, unended } : null
}

/**
 * Whether a row has been as it is since then. Rows have the lower 32 bits of a transaction's number: the newest of
 * these numbers is meant. Where it was an older one, the row may be left out.
 * @param row its alias. @throws RequestError bad_request for what is no moment.
 */
export function wasSeen(row: FragmentSqlToken, seen: string): FragmentSqlToken {
  const known = transactionsOf(seen)
  if (!known) throw new RequestError('bad_request', 'This form is out of date. Reload the page.')
  const { end, unended } = known
  return sql.fragment`(
    select id < ${end}::bigint and id <> all(${sql.array(unended, 'int8')})
    from (select newest - ((newest - ${row}.xmin::text::bigint) & 4294967295) as id
      from (select greatest(pg_snapshot_xmax(pg_current_snapshot()), pg_current_xact_id_if_assigned())::text::bigint
        as newest) now) version)`
}
