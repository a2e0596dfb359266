/**
 * Deletes a WhatsApp message without attempts, and its request if it was the last message. The team's account is
 * locked, so that two transactions can't delete the last two messages at once.
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
