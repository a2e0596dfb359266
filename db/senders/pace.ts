/**
 * How fast a sender (a number, an account, a relay) may send, shared by all workers through one row.
 * Promises: tokens are leased in blocks, so pacing costs a few statements a batch; a slowed sender recovers by a
 * tenth of its ceiling every minute; a paused one grants nothing until its pause ends. reliability §2 C.
 */
import type { Database, Tx } from '../pool.ts'
import { lockSender, type SenderRow, saveSender } from './table.ts'

const RECOVERY = 60_000
const SLOWEST = 0.2

/** A sender's state at one time. */
export type Pace = {
  rate: number
  slowed_at: Date | null
  tokens: number
  refilled_at: Date
  paused_until: Date | null
  pause_reason: string | null
}

/** What a lease grants: how many may be sent now, and after how many seconds to ask again for the rest. */
export type Lease = { granted: number; wait_seconds: number }

const dateOrNull = (text: string | null): Date | null => (text === null ? null : new Date(text))

/** The stored pace as it stands at `now`: recovered and refilled. Pure. */
export function paceAt(row: SenderRow, ceiling: number, now: Date): Pace {
  const slowedAt = dateOrNull(row.slowed_at)
  const minutes =
    slowedAt === null ? 0 : Math.max(0, Math.floor((now.getTime() - slowedAt.getTime()) / RECOVERY))
  const recovered = slowedAt === null ? ceiling : Math.min(ceiling, row.rate + minutes * (ceiling / 10))
  const refilledAt = new Date(row.refilled_at)
  const seconds = Math.max(0, now.getTime() - refilledAt.getTime()) / 1_000
  return {
    rate: recovered,
    slowed_at:
      recovered >= ceiling || slowedAt === null ? null : new Date(slowedAt.getTime() + minutes * RECOVERY),
    // At most one second's worth is saved up.
    tokens: Math.min(Math.max(1, recovered), row.tokens + seconds * recovered),
    refilled_at: now > refilledAt ? now : refilledAt,
    paused_until: dateOrNull(row.paused_until),
    pause_reason: row.pause_reason,
  }
}

/** Takes up to `wanted` sends from the pace. Pure. */
export function take(pace: Pace, wanted: number, now: Date): { pace: Pace; lease: Lease } {
  if (pace.paused_until !== null && pace.paused_until > now) {
    const wait_seconds = Math.ceil((pace.paused_until.getTime() - now.getTime()) / 1_000)
    return { pace, lease: { granted: 0, wait_seconds } }
  }
  const granted = Math.min(wanted, Math.floor(pace.tokens))
  const short = wanted - granted
  const wait_seconds = short === 0 ? 0 : Math.max(1, Math.ceil(Math.min(short, pace.rate) / pace.rate))
  return {
    pace: { ...pace, tokens: pace.tokens - granted, paused_until: null, pause_reason: null },
    lease: { granted, wait_seconds },
  }
}

async function change<T>(
  tx: Tx,
  { key, ceiling }: Sender,
  now: Date,
  decide: (pace: Pace) => { pace: Pace; result: T },
): Promise<T> {
  const { pace, result } = decide(paceAt(await lockSender(tx, key, ceiling, now), ceiling, now))
  await saveSender(tx, key, pace)
  return result
}

/** What is paced: its key (`whatsapp:<number id>`, `ses`, `smtp`) and its ceiling in sends per second. */
export type Sender = { key: string; ceiling: number }

/** Leases a block of sends, in a transaction of its own. */
export async function leaseSends(
  database: Database,
  sender: Sender,
  wanted: number,
  now: Date,
): Promise<Lease> {
  return await database.transaction(
    async (tx) =>
      await change(tx, sender, now, (pace) => {
        const taken = take(pace, wanted, now)
        return { pace: taken.pace, result: taken.lease }
      }),
  )
}

/** Halves the sender's rate: the provider said that it is too fast. Several calls within a second count once. */
export async function slowSender(tx: Tx, sender: Sender, now: Date): Promise<void> {
  await change(tx, sender, now, (pace) => {
    const justSlowed = pace.slowed_at !== null && now.getTime() - pace.slowed_at.getTime() < 1_000
    if (justSlowed) return { pace, result: undefined }
    const rate = Math.max(SLOWEST, pace.rate / 2)
    return { pace: { ...pace, rate, slowed_at: now, tokens: 0 }, result: undefined }
  })
}

/** Stops the sender until a time, with the provider's words. A longer pause that stands already stays. */
export async function pauseSender(
  tx: Tx,
  sender: Sender,
  until: Date,
  reason: string,
  now: Date,
): Promise<void> {
  await change(tx, sender, now, (pace) => {
    if (pace.paused_until !== null && pace.paused_until >= until) return { pace, result: undefined }
    return { pace: { ...pace, paused_until: until, pause_reason: reason }, result: undefined }
  })
}
