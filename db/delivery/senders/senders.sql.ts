/** Rows of senders. All times are the database's. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, number, object, string } from 'yup'
import { WEBHOOK_SENDERS } from '../../channels/webhook.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import type { Deferrals } from './deferrals.ts'

const senderRow = row({
  key: string(),
  rate: number(),
  slowed_at: string().nullable(),
  tokens: number(),
  refilled_at: string(),
  paused_until: string().nullable(),
  pause_reason: string().nullable(),
  /** Failures in a row that affected all sends (circuit-breaker.ts). */
  troubles: number(),
  troubled_at: string().nullable(),
  accepted_at: string().nullable(),
  /** Deferrals in a row with similar responses (deferrals.ts). */
  deferrals: mixed<Deferrals>().nullable(),
})
export type SenderRow = InferType<typeof senderRow>

/** True for our own senders, false for a team's server. There may be thousands of those. */
export const isOwnSender = sql.fragment`not starts_with(s.key, ${WEBHOOK_SENDERS})`

const timedRow = senderRow.concat(row({ now: string() }))

const senderColumns = sql.fragment`
  key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at, accepted_at, deferrals`

/**
 * Locks the rows of senders in key order, and returns them with the database's time after the lock. Missing rows are
 * created with the full rate.
 */
export async function lockSenders(tx: Tx, senders: readonly { key: string; ceiling: number }[]) {
  const keys = senders.map(({ key }) => key)
  const held = async () =>
    await tx.any(sql.prepared('lock_senders', timedRow)`
      with held as (
        select ${senderColumns} from senders where key = any(${sql.array(keys, 'text')})
        order by key for no key update)
      select *, service_time() as now from held`)
  let rows = await held()
  if (rows.length < senders.length) {
    const known = new Set(rows.map(({ key }) => key))
    const missing = senders.filter(({ key }) => !known.has(key))
    await tx.query(sql.type(object())`
      insert into senders (key, rate, tokens, refilled_at)
      select key, ceiling, greatest(1, ceiling), service_time()
      from ${rowsOf('s', { key: 'text', ceiling: 'float8' }, missing)} order by key
      on conflict do nothing`)
    rows = await held()
  }
  return new Map(rows.map((row) => [row.key, row]))
}

/** The name of a sender `s` that is a WhatsApp number, or null. */
const numberName = sql.fragment`(
  select name from whatsapp_numbers where s.key = 'whatsapp:' || phone_number_id)`

const namedRow = timedRow.concat(row({ name: string().nullable() }))
export type NamedSender = InferType<typeof namedRow>

const unusedRow = row({ name: string() })

/** Returns the names of WhatsApp numbers that no team uses, except the default one. */
export const unusedNumbers = (tx: Tx) =>
  tx.anyFirst(sql.type(unusedRow)`
    select name from whatsapp_numbers n
    where name <> 'default' and not exists (select from teams where whatsapp_number = n.name)`)

/** Ends a sender's pause and resets its failures. @returns the row, or null if it doesn't exist. */
export const endPause = (tx: Tx, key: string) =>
  tx.maybeOne(sql.type(namedRow)`
    update senders s set paused_until = null, pause_reason = null, troubles = 0, troubled_at = null
    where key = ${key} returning ${senderColumns}, ${numberName} as name, service_time() as now`)

type TimeColumn = 'slowed_at' | 'paused_until' | 'troubled_at' | 'accepted_at'
/** A row whose times are dates. */
export type CachedSender = Omit<SenderRow, TimeColumn | 'refilled_at'> &
  Record<TimeColumn, Date | null> & { refilled_at: Date }

const KEPT = {
  ...{ key: 'text', rate: 'float8', slowed_at: 'timestamptz', tokens: 'float8', refilled_at: 'timestamptz' },
  ...{ paused_until: 'timestamptz', pause_reason: 'text', troubles: 'int4' },
  ...{ troubled_at: 'timestamptz', accepted_at: 'timestamptz', deferrals: 'json' },
}

/** Writes all columns of locked senders, in one statement. */
export const saveSenders = (tx: Tx, senders: readonly CachedSender[]) =>
  tx.query(sql.prepared('save_senders', object())`
    update senders s set rate = k.rate, slowed_at = k.slowed_at, tokens = k.tokens, refilled_at = k.refilled_at,
      paused_until = k.paused_until, pause_reason = k.pause_reason, troubles = k.troubles,
      troubled_at = k.troubled_at, accepted_at = k.accepted_at, deferrals = k.deferrals
    from ${rowsOf('k', KEPT, senders)}
    where s.key = k.key`)

const readRow = row({ now: string(), row: mixed<SenderRow>().nullable() })

export type ReadSenders = { now: Date; rows: ReadonlyMap<string, SenderRow> }

function asRead(found: readonly InferType<typeof readRow>[]): ReadSenders {
  const rows = found.flatMap(({ row }) => row ?? [])
  return { now: new Date(found[0]?.now ?? Number.NaN), rows: new Map(rows.map((row) => [row.key, row])) }
}

export const sendersByKeys = async (tx: Tx, keys: readonly string[]): Promise<ReadSenders> =>
  asRead(
    await tx.any(sql.prepared('senders_by_keys', readRow)`
      select t.now, to_jsonb(s) as row
      from (select service_time() as now offset 0) t
        left join senders s on s.key = any(${sql.array(keys, 'text')})`),
  )

const readAtHomeRow = readRow.concat(row({ is_home: boolean() }))

/**
 * The same, and true if this is the original database. False in a copy, and briefly after a failover. One
 * statement for every batch.
 */
export async function sendersAtHome(tx: Tx, keys: readonly string[]) {
  const found = await tx.any(sql.prepared('senders_at_home', readAtHomeRow)`
    select t.now, is_at_home() as is_home, to_jsonb(s) as row
    from (select service_time() as now offset 0) t
      left join senders s on s.key = any(${sql.array(keys, 'text')})`)
  return { ...asRead(found), is_home: found[0]?.is_home === true }
}

/** Returns the senders that are paused or probed, by a prefix of their keys. */
export const readFailingSenders = async (tx: Tx, prefix: string): Promise<ReadSenders> =>
  asRead(
    await tx.any(sql.prepared('senders_in_trouble', readRow)`
      select t.now, to_jsonb(s) as row
      from (select service_time() as now offset 0) t
        left join (
          select * from senders
          where starts_with(key, ${prefix}) and (troubles > 0 or paused_until is not null)) s
        on s.troubles > 0 or s.paused_until > t.now`),
  )

const pausedRow = row({ sender: string(), until: string().nullable(), reason: string().nullable() })
/** A paused sender, with the end (null: until an operator resumes it) and the reason. */
export type SenderPause = InferType<typeof pausedRow>

/** Selects pauses. Without a field, all. */
type Asked = {
  key?: string | undefined
  /** Only this WhatsApp number. Null: the default one. */
  number?: string | null | undefined
  /** Only the current WhatsApp number of this team. */
  team?: string | undefined
}

const defaultNumber = sql.fragment`(select phone_number_id from whatsapp_numbers where name = 'default')`

/** True if a pause `p` doesn't belong to another WhatsApp number. */
function isOfNumber({ number, team }: Asked) {
  if (number === undefined && team === undefined) return sql.fragment`true`
  const own =
    number === undefined
      ? sql.fragment`(
          select n.phone_number_id from teams t join whatsapp_numbers n on n.name = t.whatsapp_number
          where t.id = ${team ?? null})`
      : sql.fragment`${number}::text`
  return sql.fragment`
    not exists (
      select from whatsapp_numbers n
      where p.sender = 'whatsapp:' || n.phone_number_id
        and n.phone_number_id is distinct from coalesce(${own}, ${defaultNumber}))`
}

/** Returns our paused senders, including numbers paused by an operator. With a key, only that one. */
export const pausedSenders = (tx: Tx, asked: Asked = {}) =>
  tx.any(sql.type(pausedRow)`
    select p.sender, p.until, p.reason from (
      select key as sender, paused_until as until, pause_reason as reason from senders s
      where paused_until > (select service_time())
        and ${asked.key === undefined ? isOwnSender : sql.fragment`key = ${asked.key}`}
      union all
      select 'whatsapp:' || phone_number_id, null, 'paused by an operator' from whatsapp_numbers
      where paused_at is not null and ${asked.key === undefined ? sql.fragment`true` : sql.fragment`'whatsapp:' || phone_number_id = ${asked.key}`}
    ) p
    where ${isOfNumber(asked)}
    order by p.sender, p.until nulls first`)

/** A recipient that a sender can't send to for a while, with the provider's response. */
export type RecipientPause = { sender: string; recipient: string; paused_until: Date; reason: string }

const recipientPauseRow = row({
  sender: string(),
  recipient: string(),
  paused_until: string(),
  /** How long it still lasts. */
  seconds: number(),
  reason: string(),
})

export const recipientPauses = (tx: Tx, recipients: readonly string[]) =>
  tx.any(sql.prepared('recipient_pauses', recipientPauseRow)`
    select sender, recipient, paused_until, reason, extract(epoch from paused_until - now) as seconds
    from recipient_pauses cross join (select service_time() as now offset 0) t
    where recipient = any(${sql.array(recipients, 'text')}) and paused_until > now
    order by sender, recipient`)

/** Stores pauses in the global lock order. A longer existing pause stays. */
export async function pauseRecipients(tx: Tx, pauses: readonly RecipientPause[]): Promise<void> {
  const types = { sender: 'text', recipient: 'text', paused_until: 'timestamptz', reason: 'text' }
  await tx.query(sql.type(object())`
    insert into recipient_pauses (sender, recipient, paused_until, reason)
    select distinct on (recipient, sender) sender, recipient, paused_until, reason
    from ${rowsOf('p', types, pauses)}
    order by recipient, sender, paused_until desc
    on conflict (recipient, sender) do update set paused_until = excluded.paused_until, reason = excluded.reason
    where recipient_pauses.paused_until < excluded.paused_until`)
}

export const deleteExpiredRecipientPauses = (tx: Tx) =>
  tx.query(sql.type(object())`delete from recipient_pauses where paused_until <= (select service_time())`)

const extendedRow = row({ key: string(), is_news: boolean() })

/**
 * Pauses senders until a time each, in one statement. A longer pause stays.
 * @returns those that exist, and true for those that weren't paused for this reason at `now`.
 */
export const extendPauses = (
  tx: Tx,
  pauses: readonly { key: string; until: Date; reason: string }[],
  now: Date,
) =>
  tx.any(sql.prepared('extend_sender_pauses', extendedRow)`
    with meant as (
      select s.key, p.until, p.reason,
        s.pause_reason is distinct from p.reason or coalesce(s.paused_until <= ${sql.timestamp(now)}, true) as is_other
      from ${rowsOf('p', { key: 'text', until: 'timestamptz', reason: 'text' }, pauses)}
        join senders s on s.key = p.key
      order by s.key for no key update of s
    ), changed as (
      update senders s set paused_until = m.until, pause_reason = m.reason
      from meant m
      where s.key = m.key and (s.paused_until is null or s.paused_until < m.until)
      returning s.key
    )
    select key, is_other and key in (select key from changed) as is_news from meant`)

/** Returns all our senders that were ever limited, slowed or paused: relays, accounts and numbers. */
export const ownSenders = (tx: Tx) =>
  tx.any(sql.type(namedRow)`
    select ${senderColumns}, ${numberName} as name, service_time() as now
    from senders s where ${isOwnSender} order by key`)
