/**
 * What a team has stored in a period, counted from the rows themselves.
 * Promises: an id's time is its row's created_at, so a count reads one stretch of the primary key. Runs when a period
 * moves, never on the path of a request.
 */
import { type IdentifierSqlToken, sql } from 'slonik'
import { number, object } from 'yup'
import type { Period } from '../plans/period.ts'
import type { Tx } from '../postgres/pool.ts'
import { firstIdAt } from '../text/ids.ts'

const countRow = object({ count: number().defined() })

async function countRows(
  tx: Tx,
  teamId: string,
  table: IdentifierSqlToken,
  { start, end }: Period,
): Promise<number> {
  const { count } = await tx.one(sql.type(countRow)`
    select count(*) as count from ${table}
    where team_id = ${teamId} and id >= ${firstIdAt(start)} and id < ${firstIdAt(end)}
      and created_at >= ${sql.timestamp(start)} and created_at < ${sql.timestamp(end)}`)
  return count
}

/** How many emails and WhatsApp messages the team stored in a period. */
export async function usageIn(
  tx: Tx,
  teamId: string,
  period: Period,
): Promise<{ emails: number; whatsapp: number }> {
  return {
    emails: await countRows(tx, teamId, sql.identifier(['emails']), period),
    whatsapp: await countRows(tx, teamId, sql.identifier(['whatsapp_messages']), period),
  }
}
