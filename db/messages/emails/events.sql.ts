/** Rows of email_events. */
import { sql } from 'slonik'
import { string } from 'yup'
import type { ContactEffect } from '../../audience/contacts/effect.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import type { MessageEvent } from '../../channels/events/events.sql.ts'
import { storeEvents } from '../../channels/events/store-events.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import type { EmailRef } from './emails.sql.ts'
import type { EmailEventKind } from './status.ts'

export type EmailEvent = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> &
  EmailRef & {
    kind: EmailEventKind
    recipient: string | null
    effect?: ContactEffect
    /** The stored report that it comes from, if any. */
    report_id?: string | undefined
    contact_id?: string | undefined
  }

/** Only events that count for soft bounces are read again. Version 0.1.0 finds them by contact. */
const counted = ({ contact_id, effect }: EmailEvent): [string | null, string | null] =>
  effect === 'soft' || effect === 'delivered' ? [contact_id ?? null, effect] : [null, null]

/** Stores events of emails. @returns the new ones. */
export async function storeEmailEvents<E extends EmailEvent>(tx: Tx, events: readonly E[]): Promise<E[]> {
  const given = events.map((event) => {
    const [contact_id, effect] = counted(event)
    const { team_id, email_id: id, event_key, kind, recipient, occurred_at, detail } = event
    return { team_id, id, event_key, kind, recipient, occurred_at, detail, contact_id, effect, event }
  })
  return (await storeEvents(tx, EMAIL, given)).map(({ event }) => event)
}

const eventRow = row({
  kind: string(),
  recipient: string().nullable(),
  occurred_at: string(),
  detail: string(),
})

export const eventsOfEmail = (tx: Tx, teamId: string, id: string) =>
  tx.any(sql.type(eventRow)`
    select kind, recipient, occurred_at, detail from email_events
    where team_id = ${teamId} and email_id = ${id} order by occurred_at, kind = 'gave_up', event_key`)

/** Events with a server's response about the email itself, which isn't a success. */
const PROBLEMS: readonly EmailEventKind[] = ['bounced', 'deferred', 'delayed', 'unknown', 'gave_up']

const responseRow = row({ id: string(), detail: string() })

/** Returns the last responses of emails, with the reason for a bounce, failure or wait, by the emails' IDs. */
export async function lastResponses(tx: Tx, teamId: string, ids: readonly string[]) {
  if (ids.length === 0) return new Map<string, string>()
  const rows = await tx.any(sql.type(responseRow)`
    select distinct on (email_id) email_id as id, detail from email_events
    where team_id = ${teamId} and email_id = any(${sql.array(ids, 'uuid')})
      and kind = any(${sql.array(PROBLEMS, 'text')}) and detail <> ''
    order by email_id, occurred_at desc`)
  return new Map(rows.map(({ id, detail }) => [id, detail]))
}
