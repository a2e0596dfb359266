/** Finds, exports and erases the stored data about a WhatsApp number. */
import { sql } from 'slonik'
import { boolean, mixed, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'

const isTo = (numbers: readonly string[]) => sql.fragment`recipient = any(${sql.array(numbers, 'text')})`

const shownRow = row({
  id: string(),
  to: string(),
  country: string().nullable(),
  status: string(),
  created_at: string(),
  template_id: string(),
  parameters: mixed<Record<string, string>>(),
  wa_id: string().nullable(),
  pricing: mixed<object>().nullable(),
  events: mixed<object[]>(),
})

/** The team's messages to a number, oldest first. */
export const messagesToNumber = (tx: Tx, teamId: string, numbers: readonly string[]) =>
  tx.any(sql.type(shownRow)`
    select m.id, m.recipient as "to", m.country,
      case when m.was_sent and m.status = 'queued' then 'sent' else m.status end as status, m.created_at,
      r.template_id, r.parameters, m.wa_id, m.pricing,
      coalesce((
        select json_agg(json_build_object('kind', v.kind, 'occurred_at', v.occurred_at, 'detail', v.detail)
          order by v.occurred_at)
        from whatsapp_events v where v.team_id = m.team_id and v.message_id = m.id), '[]') as events
    from whatsapp_messages m join whatsapp_requests r on r.team_id = m.team_id and r.id = m.request_id
    where m.team_id = ${teamId} and m.${isTo(numbers)} order by m.id`)

const optOutRow = row({ to: string(), opted_out: boolean(), at: string(), by: string() })

export const optOutsOfNumber = (tx: Tx, teamId: string, numbers: readonly string[]) =>
  tx.any(sql.type(optOutRow)`
    select recipient as "to", is_out as opted_out, at, by from whatsapp_opt_outs
    where team_id = ${teamId} and ${isTo(numbers)} order by at`)

const lockedRow = row({ id: string(), waits: boolean() })

/** Locks and returns the team's messages to a number. `waits` is true for unsent ones. */
export const lockMessagesToNumber = (tx: Tx, teamId: string, numbers: readonly string[]) =>
  tx.any(sql.type(lockedRow)`
    select id, unfinished or due_at is not null as waits from whatsapp_messages
    where team_id = ${teamId} and ${isTo(numbers)} order by id for update`)

/**
 * Removes the number and the content from messages, unless others still wait for the same content. Meta's IDs are
 * removed because they contain the number.
 */
export async function rewriteMessages(tx: Tx, teamId: string, ids: readonly string[], placeholder: string) {
  const these = sql.array(ids, 'uuid')
  const requests = await tx.anyFirst(sql.type(idRow)`
    update whatsapp_messages set recipient = ${placeholder}, country = null, wa_id = null,
      provider_message_id = null, given_back = null
    where team_id = ${teamId} and id = any(${these}) returning request_id as id`)
  await tx.query(sql.type(object())`
    update whatsapp_events set detail = '' where team_id = ${teamId} and message_id = any(${these})`)
  await tx.query(sql.type(object())`
    update whatsapp_requests r set parameters = '{}'
    where r.team_id = ${teamId} and r.id = any(${sql.array([...new Set(requests)], 'uuid')}) and not exists (
      select from whatsapp_messages m
      where m.team_id = r.team_id and m.request_id = r.id and (m.unfinished or m.due_at is not null))`)
}

const removedRow = row({ is_out: boolean() })

/** Deletes opt-outs of a number. @returns true if some of them were in force. */
export const deleteOptOuts = (tx: Tx, teamId: string, numbers: readonly string[]) =>
  tx.any(sql.type(removedRow)`
    delete from whatsapp_opt_outs where team_id = ${teamId} and ${isTo(numbers)} returning is_out`)

export const deleteNumberPauses = (tx: Tx, numbers: readonly string[]) =>
  tx.query(sql.type(object())`delete from recipient_pauses where ${isTo(numbers)}`)

const reportsRow = row({ deleted: number() })

/** Deletes the stored reports about the team that name one of these digits. */
export const deleteReportsOfNumber = (tx: Tx, teamId: string, digits: readonly string[]) =>
  tx.one(sql.type(reportsRow)`
    with gone as (
      delete from reports
      where provider in ('whatsapp', 'whatsapp-number') and ${teamId} = any(team_ids)
        and encode(body, 'escape') ~ ${`(?<![0-9])(${digits.join('|')})(?![0-9])`}
      returning 1
    )
    select count(*) as deleted from gone`)
