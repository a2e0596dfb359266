/** Rows of senders, and the queries over them. */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Tx } from '../pool.ts'

const senderRow = object({
  key: string().defined(),
  rate: number().defined(),
  slowed_at: string().defined().nullable(),
  tokens: number().defined(),
  refilled_at: string().defined(),
  paused_until: string().defined().nullable(),
  pause_reason: string().defined().nullable(),
})
export type SenderRow = InferType<typeof senderRow>

const senderColumns = sql.fragment`key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason`

/** The sender's row, locked until the transaction ends; made at full pace if there is none. */
export async function lockSender(tx: Tx, key: string, ceiling: number, now: Date): Promise<SenderRow> {
  return await tx.one(sql.prepared('lock_sender', senderRow)`
    insert into senders (key, rate, tokens, refilled_at)
    values (${key}, ${ceiling}, ${Math.max(1, ceiling)}, ${sql.timestamp(now)})
    on conflict (key) do update set key = excluded.key
    returning ${senderColumns}`)
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
  },
): Promise<void> {
  await tx.query(sql.prepared('save_sender', object())`
    update senders set rate = ${sender.rate}, slowed_at = ${at(sender.slowed_at)}::timestamptz, tokens = ${sender.tokens},
      refilled_at = ${sql.timestamp(sender.refilled_at)}, paused_until = ${at(sender.paused_until)}::timestamptz,
      pause_reason = ${sender.pause_reason}
    where key = ${key}`)
}

/** The sender's row as it is; null when it has none yet. */
export async function senderByKey(tx: Tx, key: string): Promise<SenderRow | null> {
  return await tx.maybeOne(sql.prepared('sender_by_key', senderRow)`
    select ${senderColumns} from senders where key = ${key}`)
}

const pausedRow = object({
  key: string().defined(),
  paused_until: string().defined(),
  pause_reason: string().defined().nullable(),
})

/** The senders that are paused at `now`; only those of `keys` when given. */
export async function pausedSenders(tx: Tx, now: Date, keys?: readonly string[]) {
  const among = keys === undefined ? sql.fragment`true` : sql.fragment`key = any(${sql.array(keys, 'text')})`
  return await tx.any(sql.type(pausedRow)`
    select key, paused_until, pause_reason from senders
    where paused_until > ${sql.timestamp(now)} and ${among} order by key`)
}

/** Every sender, for people. */
export async function allSenders(tx: Tx): Promise<readonly SenderRow[]> {
  return await tx.any(sql.type(senderRow)`select ${senderColumns} from senders order by key`)
}
