/** The query behind every search of WhatsApp messages: one filter, newest first, in pages by key. */
import { sql } from 'slonik'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { firstIdAt, spellingsOfId } from '../../validation/ids.ts'
import { hasStatus, messageColumns, messageRow, messagesFrom } from './messages.sql.ts'
import type { WhatsappStatus } from './status.ts'

/** All set filters must match. */
export type MessageFilter = {
  /** Numbers in E.164 form, one of which must match. */
  recipients?: readonly string[] | undefined
  /** The message's ID or provider ID, or its request's idempotency key or X-Request-Id. */
  id?: string | undefined
  status?: WhatsappStatus | undefined
  scheduled?: boolean | undefined
  template_id?: string | undefined
  from?: Date | undefined
  /** Accepted before this time. */
  to?: Date | undefined
}

/**
 * Returns a page of a team's matching messages, newest first. With `before`, only those after this ID in the list.
 */
export async function messagesFound(
  tx: Tx,
  teamId: string,
  { recipients, id, status, scheduled, template_id: template, from, to }: MessageFilter,
  { before, limit }: { before?: string | undefined; limit: number },
) {
  const fits = allOf(
    sql.fragment`m.team_id = ${teamId}`,
    recipients !== undefined && sql.fragment`m.recipient = any(${sql.array(recipients, 'text')})`,
    id !== undefined &&
      sql.fragment`m.id in (${WHATSAPP.findInTeam({ team: sql.fragment`${teamId}`, ...spellingsOfId(id) })})`,
    status !== undefined && hasStatus(status),
    // Few have failed, and they have their own index.
    status === 'failed' && sql.fragment`m.rare_status = ${status}`,
    scheduled && sql.fragment`m.due_at is not null`,
    template !== undefined && sql.fragment`r.template_id = ${template}`,
    from !== undefined && sql.fragment`m.id >= ${firstIdAt(from)}`,
    to !== undefined && sql.fragment`m.id < ${firstIdAt(to)}`,
    before !== undefined && sql.fragment`m.id < ${before}`,
  )
  return tx.any(sql.type(messageRow)`
    select ${messageColumns} from ${messagesFrom(teamId, scheduled ? undefined : status)} where ${fits} order by m.id desc limit ${limit}`)
}
