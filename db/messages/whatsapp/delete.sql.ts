/**
 * The deletion of one WhatsApp message that nobody has tried, and with the last of a request's the request.
 * Promises: the team's account is locked, so that no two delete the last two at once. Figures are the database's.
 */
import { sql } from 'slonik'
import { string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

const deletedRow = row({ created_at: string() })

export const deleteMessage = (tx: Tx, teamId: string, id: string) =>
  tx.any(sql.type(deletedRow)`
    with gone as (
      delete from whatsapp_messages where team_id = ${teamId} and id = ${id} returning request_id, created_at
    ), timeline as (
      delete from whatsapp_events where team_id = ${teamId} and message_id = ${id}
    ), request as (
      delete from whatsapp_requests r using gone g
      where r.team_id = ${teamId} and r.id = g.request_id and not exists (
        select from whatsapp_messages m
        where m.team_id = ${teamId} and m.request_id = g.request_id and m.id <> ${id})
    )
    select created_at from gone`)
