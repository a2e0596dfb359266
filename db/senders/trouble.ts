/**
 * Trouble of a sender, found by what is sent through it: nothing can be sent, or it works again.
 * Promises: a send that began before the trouble, or its end, was known changes nothing. Pauses grow with each failed
 * probe, to half a minute at most unless the provider names a time; a longer one that stands stays. The first send that
 * began after the trouble and was taken ends it, at once for every worker. The sender's timeline records both, once.
 * Runs last in the caller's transaction, because other sends wait for these rows. All times are the database's.
 */
import type { Tx } from '../postgres/pool.ts'
import { insertSenderEvents } from './events.sql.ts'
import { changePace, type Pace, PROBE, type Sender } from './pace.ts'
import { senderStanding } from './senders.sql.ts'

/** A sender that cannot be reached is asked again soon, one whose set-up is refused less and less often. In seconds. */
const PAUSES = { connection: [1, 2, 4, 6], setup: [2, 4, 8, 16, 30] } as const

export type Trouble = {
  kind: keyof typeof PAUSES
  /** The provider's words. */
  words: string
  /** How long the provider says that it will refuse everything, in seconds. */
  wait_seconds?: number | undefined
  /** When the send that met the trouble began. */
  began_at: Date
}

/** How long a sender is paused after so many troubles in a row, in seconds. Pure. */
export const pauseAfter = (kind: Trouble['kind'], troubles: number): number =>
  PAUSES[kind][Math.min(Math.max(troubles, 1), PAUSES[kind].length) - 1] ?? 1

/** Pauses a sender in trouble. @returns for how many seconds; null when the trouble was known already. */
export async function noteTrouble(
  tx: Tx,
  sender: Sender,
  { kind, words, wait_seconds, began_at }: Trouble,
): Promise<number | null> {
  const noted = await changePace(tx, sender, (pace, now) => {
    const known = Math.max(pace.troubled_at?.getTime() ?? 0, pace.accepted_at?.getTime() ?? 0)
    if (began_at.getTime() <= known) return { pace, result: null }
    const troubles = pace.troubles + 1
    const wait = wait_seconds ?? pauseAfter(kind, troubles)
    const until = new Date(now.getTime() + wait * 1_000)
    const troubled: Pace = { ...pace, troubles, troubled_at: now }
    const left = ((pace.paused_until?.getTime() ?? 0) - now.getTime()) / 1_000
    // A shorter one may be this very probe's.
    if (left > Math.max(wait, PROBE)) return { pace: troubled, result: { wait: left, told: true, now } }
    const told = pace.troubles > 0 && pace.pause_reason === words
    const paused: Pace = { ...troubled, paused_until: until, pause_reason: words }
    return { pace: paused, result: { wait, told, now } }
  })
  if (noted === null) return null
  if (!noted.told) {
    const event = { sender: sender.key, kind: 'paused' as const, occurred_at: noted.now, detail: words }
    await insertSenderEvents(tx, [event])
  }
  return noted.wait
}

/** Ends a sender's trouble, after a send that began since was taken. @returns whether there was one. */
export async function noteRecovery(tx: Tx, sender: Sender, began_at: Date): Promise<boolean> {
  const recovered_at = await changePace<Date | null>(tx, sender, (pace, now) => {
    const { troubled_at } = pace
    if (pace.troubles === 0 || troubled_at === null || began_at <= troubled_at) return { pace, result: null }
    return { pace: { ...pace, ...AT_EASE, accepted_at: now }, result: now }
  })
  if (recovered_at === null) return false
  const detail = 'messages are taken again'
  const event = { sender: sender.key, kind: 'recovered' as const, occurred_at: recovered_at, detail }
  await insertSenderEvents(tx, [event])
  return true
}

/** A sender that has no trouble. */
const AT_EASE = { troubles: 0, troubled_at: null, paused_until: null, pause_reason: null }

/** How a sender stands, as its workers look at it before they claim anything. */
export type Standing = {
  /** When it stood so. */
  now: Date
  /** Seconds until the next look; 0 when it may send. */
  wait_seconds: number
  /** Whether it is only probed: one message at a time, until one is taken. */
  probing: boolean
  /** When the provider took a message again after the last trouble. */
  accepted_at: Date | null
}

/** How the sender of this key stands. One read. */
export async function standingOf(tx: Tx, key: string): Promise<Standing> {
  const { now, wait_seconds, troubles, accepted_at } = await senderStanding(tx, key)
  return {
    now: new Date(now),
    wait_seconds,
    probing: troubles > 0,
    accepted_at: accepted_at === null ? null : new Date(accepted_at),
  }
}
