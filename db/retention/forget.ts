/**
 * Forgets what has been kept for as long as the operator's settings say: a message's events, its body, its row; and
 * what happened to senders.
 * Promises: small lots with pauses between them, each a statement of its own, so that nobody waits. It never deletes
 * what still has to be delivered, nor its events, nor a row of the team's current period, whose count is the quota.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { CHANNELS } from '../channels/channels.sql.ts'
import { deleteStandstills } from '../delivery/standstills.sql.ts'
import { collectFiles } from '../files/collect.ts'
import type { Database } from '../postgres/pool.ts'
import { firstIdAt } from '../text/ids.ts'
import {
  deleteEvents,
  deleteMessages,
  deleteRequests,
  deleteSenderEvents,
  deleteWebhooks,
  emptiedUntil,
  emptyEmails,
  emptyRequests,
  type Found,
  type Lot,
  noteEmptied,
  teamIds,
} from './retention.sql.ts'

/** For how many days each kind is kept; null: for ever. */
export type Retention = {
  reports: number
  events: number | null
  bodies: number | null
  messages: number | null
  senders: number | null
  /** Bytes of attachments, after their last use. */
  files: number
}

export type Forgotten = {
  events: number
  bodies: number
  messages: number
  senders: number
  webhooks: number
  files: number
}

const DAY = 86_400_000
/** Rows of one statement, and the breath after it in milliseconds. */
const LOT = 1_000
const BREATH = 20
/** How long to look again for bodies that could not be emptied in time (just locked, or still waiting). */
const SECOND_LOOK = 7 * DAY
const NO_ID = '00000000-0000-0000-0000-000000000000'

/** Goes through a team's rows lot by lot. @returns how many there were. */
async function inLots(
  work: (lot: Lot) => Promise<Found>,
  span: { from: string; before: string },
): Promise<number> {
  let total = 0
  for (let after = span.from; ; ) {
    const { found, last } = await work({ after, before: span.before, limit: LOT })
    total += found
    if (found < LOT || last === null) return total
    after = last
    await sleep(BREATH)
  }
}

const before = (now: Date, days: number): Date => new Date(now.getTime() - days * DAY)

async function emptyBodies(database: Database, teams: readonly string[], until: Date): Promise<number> {
  const done = await emptiedUntil(database)
  const from = done === null ? NO_ID : firstIdAt(new Date(done.getTime() - SECOND_LOOK))
  const span = { from, before: firstIdAt(until) }
  let total = 0
  for (const team of teams) {
    total += await inLots((lot) => emptyEmails(database, team, lot), span)
    total += await inLots((lot) => emptyRequests(database, team, lot), span)
  }
  await noteEmptied(database, until)
  return total
}

async function deleteOld(database: Database, teams: readonly string[], until: Date): Promise<number> {
  const span = { from: NO_ID, before: firstIdAt(until) }
  let total = 0
  for (const team of teams) {
    for (const channel of CHANNELS) {
      total += await inLots((lot) => deleteMessages(database, team, channel, lot), span)
    }
    await inLots((lot) => deleteRequests(database, team, lot), span)
  }
  return total
}

async function deleteOldEvents(database: Database, teams: readonly string[], until: Date): Promise<number> {
  const span = { from: NO_ID, before: firstIdAt(until) }
  let total = 0
  for (const team of teams) {
    for (const channel of CHANNELS) {
      total += await inLots((lot) => deleteEvents(database, team, channel, lot), span)
    }
  }
  return total
}

/** For how many days webhooks are kept that were delivered, or that failed and can be replayed. */
const WEBHOOKS = { delivered: 3, failed: 30 } as const

async function deleteOldWebhooks(database: Database, teams: readonly string[], now: Date): Promise<number> {
  let total = 0
  for (const [status, days] of Object.entries(WEBHOOKS) as [keyof typeof WEBHOOKS, number][]) {
    const span = { from: NO_ID, before: firstIdAt(before(now, days)) }
    for (const team of teams)
      total += await inLots((lot) => deleteWebhooks(database, team, status, lot), span)
  }
  return total
}

async function deleteOldSenderEvents(
  database: Database,
  _teams: readonly string[],
  until: Date,
): Promise<number> {
  await deleteStandstills(database, until)
  return inLots((lot) => deleteSenderEvents(database, lot), { from: NO_ID, before: firstIdAt(until) })
}

/** One round over all teams. @returns how much was forgotten. */
export async function forgetMessages(
  database: Database,
  { events, bodies, messages, senders, files }: Retention,
  now: Date,
): Promise<Forgotten> {
  const teams = await teamIds(database)
  const round = (days: number | null, work: typeof deleteOld): Promise<number> | 0 =>
    days === null ? 0 : work(database, teams, before(now, days))
  return {
    messages: await round(messages, deleteOld),
    events: await round(events, deleteOldEvents),
    bodies: await round(bodies, emptyBodies),
    senders: await round(senders, deleteOldSenderEvents),
    webhooks: await deleteOldWebhooks(database, teams, now),
    files: await collectFiles(database, files, now),
  }
}
