/**
 * Shows senders to operators, and ends their pauses (DECISIONS: Requeue). After a resume, sending starts immediately.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { DELIVERIES, sendsFor } from '../../channels/channels.sql.ts'
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { TEXTS } from '../texts.ts'
import { insertSenderEvents, senderEvents } from './events.sql.ts'
import { endPause, type NamedSender, ownSenders } from './senders.sql.ts'

export type ShownSender = {
  key: string
  /** The name of a number. Null for any other sender. */
  name: string | null
  /** `paused`: nothing is sent. `probing`: one message at a time. `slowed`: below its full rate. */
  state: 'sending' | 'slowed' | 'probing' | 'paused'
  rate: number
  paused_until: string | null
  reason: string | null
  /** The number of failures in a row, and since when. */
  troubles: number
  troubled_at: string | null
  /** Newest first. */
  events: { time: string; kind: string; detail: string }[]
}

const MAX_EVENTS = 20

function shown(row: NamedSender): Omit<ShownSender, 'events'> {
  const { key, name, rate, paused_until, pause_reason, troubles, troubled_at, slowed_at } = row
  const paused = paused_until !== null && Date.parse(paused_until) > Date.parse(row.now)
  const trouble = troubles > 0 ? 'probing' : slowed_at === null ? 'sending' : 'slowed'
  return {
    key,
    name,
    state: paused ? 'paused' : trouble,
    rate,
    paused_until: paused ? paused_until : null,
    reason: paused || troubles > 0 ? pause_reason : null,
    troubles,
    troubled_at,
  }
}

/** Lists all our senders that were ever limited, slowed or paused. Excludes teams' own servers. */
export async function listSenders(tx: Tx): Promise<ShownSender[]> {
  const events = Map.groupBy(await senderEvents(tx, MAX_EVENTS), ({ sender }) => sender)
  return (await ownSenders(tx)).map((row) => ({
    ...shown(row),
    events: (events.get(row.key) ?? []).map(({ sender: _sender, ...event }) => event),
  }))
}

/** Ends a sender's pause. Waiting messages are sent immediately. @throws RequestError not_found. */
export async function resumeSender(by: By, key: string): Promise<Omit<ShownSender, 'events'>> {
  const { tx } = by
  const row = await endPause(tx, key)
  if (row === null) {
    throw requestError('not_found', TEXTS.noSender, { key })
  }
  const detail = TEXTS.resumedByOperator
  const occurred_at = new Date(row.now)
  await insertSenderEvents(tx, [{ sender: key, kind: 'resumed', occurred_at, detail }])
  for (const each of DELIVERIES) if (sendsFor(each, key)) await wakeOnCommit(tx, each.job)
  await record(by, { team_id: null, action: 'sender.resume', subject: key })
  return shown(row)
}
