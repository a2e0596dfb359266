/** Rows of senders, and the queries over them, which know no clock but the database's. */
import { sql } from 'slonik'
import { boolean, type InferType, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'

const senderRow = object({
  key: string().defined(),
  rate: number().defined(),
  slowed_at: string().defined().nullable(),
  tokens: number().defined(),
  refilled_at: string().defined(),
  paused_until: string().defined().nullable(),
  pause_reason: string().defined().nullable(),
  troubles: number().defined(),
  troubled_at: string().defined().nullable(),
  accepted_at: string().defined().nullable(),
})
export type SenderRow = InferType<typeof senderRow>

const timedRow = senderRow.shape({ now: string().defined() })
/** A sender's row and when it was read. */
export type TimedSender = InferType<typeof timedRow>

const senderColumns = sql.fragment`
  key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at, accepted_at`

/** The sender's row, locked until the transaction ends, and the time since; made at full pace if there is none. */
export async function lockSender(tx: Tx, key: string, ceiling: number): Promise<TimedSender> {
  const held = async () =>
    await tx.maybeOne(sql.prepared('lock_sender', timedRow)`
      with held as (select ${senderColumns} from senders where key = ${key} for no key update)
      select *, service_time() as now from held`)
  const found = await held()
  if (found) return found
  await tx.query(sql.type(object())`
    insert into senders (key, rate, tokens, refilled_at)
    values (${key}, ${ceiling}, ${Math.max(1, ceiling)}, service_time())
    on conflict do nothing`)
  const made = await held()
  if (made) return made
  throw new Error(`the row of sender ${key} was deleted just now`)
}

/** Ends a sender's pause and trouble, whatever they were; its pace stays. @returns the row, or null without one. */
export async function endPause(tx: Tx, key: string): Promise<TimedSender | null> {
  return tx.maybeOne(sql.type(timedRow)`
    update senders set paused_until = null, pause_reason = null, troubles = 0, troubled_at = null
    where key = ${key} returning ${senderColumns}, service_time() as now`)
}

// As text: a timestamp's fragment and a null would make two statements under one name.
const at = (time: Date | null): string | null => time?.toISOString() ?? null

/** Writes a locked sender's row whole. */
export async function saveSender(
  tx: Tx,
  key: string,
  sender: {
    rate: number
    slowed_at: Date | null
    tokens: number
    refilled_at: Date
    paused_until: Date | null
    pause_reason: string | null
    troubles: number
    troubled_at: Date | null
    accepted_at: Date | null
  },
): Promise<void> {
  await tx.query(sql.prepared('save_sender', object())`
    update senders set rate = ${sender.rate}, slowed_at = ${at(sender.slowed_at)}::timestamptz, tokens = ${sender.tokens},
      refilled_at = ${sql.timestamp(sender.refilled_at)}, paused_until = ${at(sender.paused_until)}::timestamptz,
      pause_reason = ${sender.pause_reason}, troubles = ${sender.troubles},
      troubled_at = ${at(sender.troubled_at)}::timestamptz, accepted_at = ${at(sender.accepted_at)}::timestamptz
    where key = ${key}`)
}

/** The sender's row as it is; null when it has none yet. */
export async function senderByKey(tx: Tx, key: string): Promise<TimedSender | null> {
  return tx.maybeOne(sql.prepared('sender_by_key', timedRow)`
    select ${senderColumns}, service_time() as now from senders where key = ${key}`)
}

const standingRow = object({
  now: string().defined(),
  wait_seconds: number().defined(),
  troubles: number().defined(),
  accepted_at: string().defined().nullable(),
})

/** How a sender stands, with the time: one that has no row is well. */
export async function senderStanding(tx: Tx, key: string): Promise<InferType<typeof standingRow>> {
  return tx.one(sql.prepared('sender_standing', standingRow)`
    select t.now, greatest(0, coalesce(extract(epoch from s.paused_until - t.now), 0)) as wait_seconds,
      coalesce(s.troubles, 0) as troubles, s.accepted_at
    from (select service_time() as now offset 0) t left join senders s on s.key = ${key}`)
}

const pausedRow = object({
  key: string().defined(),
  paused_until: string().defined(),
  pause_reason: string().defined().nullable(),
})

/** The senders that are paused. */
export async function pausedSenders(tx: Tx) {
  return tx.any(sql.type(pausedRow)`
    select key, paused_until, pause_reason from senders
    where paused_until > (select service_time()) order by key`)
}

/** A recipient that is not to be sent to for a while through a sender, with the provider's words. */
export type RecipientPause = { sender: string; recipient: string; paused_until: Date; reason: string }

const recipientPauseRow = object({
  sender: string().defined(),
  recipient: string().defined(),
  paused_until: string().defined(),
  /** How long it still lasts. */
  seconds: number().defined(),
  reason: string().defined(),
})

/** The pauses of these recipients, at whichever sender. */
export async function recipientPauses(tx: Tx, recipients: readonly string[]) {
  return tx.any(sql.prepared('recipient_pauses', recipientPauseRow)`
    select sender, recipient, paused_until, reason, extract(epoch from paused_until - now) as seconds
    from recipient_pauses cross join (select service_time() as now offset 0) t
    where recipient = any(${sql.array(recipients, 'text')}) and paused_until > now
    order by sender, recipient`)
}

/** Sets pauses, in one order for everyone; a longer one that stands already stays. */
export async function pauseRecipients(tx: Tx, pauses: readonly RecipientPause[]): Promise<void> {
  const tuples = pauses.map((pause) => [
    pause.sender,
    pause.recipient,
    pause.paused_until.toISOString(),
    pause.reason,
  ])
  await tx.query(sql.type(object())`
    insert into recipient_pauses (sender, recipient, paused_until, reason)
    select distinct on (recipient, sender) sender, recipient, paused_until, reason
    from ${sql.unnest(tuples, ['text', 'text', 'timestamptz', 'text'])} as p (sender, recipient, paused_until, reason)
    order by recipient, sender, paused_until desc
    on conflict (recipient, sender) do update set paused_until = excluded.paused_until, reason = excluded.reason
    where recipient_pauses.paused_until < excluded.paused_until`)
}

/** Deletes the pauses that are over. */
export async function forgetRecipientPauses(tx: Tx): Promise<void> {
  await tx.query(
    sql.type(object())`delete from recipient_pauses where paused_until <= (select service_time())`,
  )
}

const extendedRow = object({ key: string().defined(), is_news: boolean().defined() })

/**
 * Pauses senders until a time each, in one statement; a longer pause stays.
 * @returns those that there are, and whether it is news: they were not paused for this reason at `now`.
 */
export async function extendPauses(
  tx: Tx,
  pauses: readonly { key: string; until: Date; reason: string }[],
  now: Date,
) {
  const tuples = pauses.map(({ key, until, reason }) => [key, until.toISOString(), reason])
  return tx.any(sql.prepared('extend_sender_pauses', extendedRow)`
    with meant as (
      select s.key, p.until, p.reason,
        s.pause_reason is distinct from p.reason or coalesce(s.paused_until <= ${sql.timestamp(now)}, true) as is_other
      from ${sql.unnest(tuples, ['text', 'timestamptz', 'text'])} as p (key, until, reason)
        join senders s on s.key = p.key
      order by s.key for no key update of s
    ), changed as (
      update senders s set paused_until = m.until, pause_reason = m.reason
      from meant m
      where s.key = m.key and (s.paused_until is null or s.paused_until < m.until)
      returning s.key
    )
    select key, is_other and key in (select key from changed) as is_news from meant`)
}

/** Every sender that was ever paced, slowed or paused. */
export async function allSenders(tx: Tx): Promise<readonly TimedSender[]> {
  return tx.any(sql.type(timedRow)`select ${senderColumns}, service_time() as now from senders order by key`)
}
