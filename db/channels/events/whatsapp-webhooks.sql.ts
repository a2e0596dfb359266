/** The query for the webhook data of WhatsApp messages. */
import { sql } from 'slonik'
import { string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { type DeliveryRef, REF } from '../channel.sql.ts'

const whatsappRow = row({
  id: string(),
  recipient: string(),
  template_id: string(),
  idempotency_key: string().nullable(),
  requeued_at: string().nullable(),
})

export const whatsappFacts = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.any(sql.prepared('notified_whatsapp', whatsappRow)`
    select m.id, m.recipient, r.template_id, r.idempotency_key, m.requeued_at
    from ${rowsOf('ref', REF, refs)}
      cross join lateral (
        select * from whatsapp_messages where team_id = ref.team_id and id = ref.id offset 0) m
      cross join lateral (
        select * from whatsapp_requests where team_id = m.team_id and id = m.request_id offset 0) r`)
