/** Returns the ends of unsent WhatsApp messages. Their status is still `queued`. */
import { sql } from 'slonik'
import { string } from 'yup'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { gaveUp } from '../../delivery/requeue.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'

/** A message has expired if it wasn't sent in time, and failed after its last attempt. */
const ENDS = ['expired', 'failed'] as const
export type WhatsappEnd = (typeof ENDS)[number]

const endedRow = idRow.concat(row({ ended: string().oneOf(ENDS) }))

/** Returns the ends of those among a team's messages that were never sent, by their IDs. */
export async function findWhatsappEnds(
  tx: Tx,
  teamId: string,
  messages: readonly { id: string; status: string }[],
): Promise<ReadonlyMap<string, WhatsappEnd>> {
  const ids = messages.filter(({ status }) => status === 'queued').map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const rows = await tx.any(sql.type(endedRow)`
    select id, case when expired_at is not null then 'expired' else 'failed' end as ended
    from whatsapp_messages m
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and ${WHATSAPP.undelivered}
      and (expired_at is not null or ${gaveUp(WHATSAPP)})`)
  return new Map(rows.map(({ id, ended }) => [id, ended]))
}
