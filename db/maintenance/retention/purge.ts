/**
 * Deletes data after its retention period: a message's events, body and row, sender events, and daily stats.
 * Scheduled messages age from their scheduled time. Works in small batches with pauses in between. Never deletes
 * undelivered messages and their events, or rows of the team's current period, whose count is the quota.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { NIL } from 'uuid'
import type { Channel } from '../../channels/channel.sql.ts'
import { CHANNELS } from '../../channels/channels.sql.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { collectFiles } from '../../content/files/collect.ts'
import { deletePauseHistory } from '../../delivery/tried-since.sql.ts'
import type { Database } from '../../postgres/pool.ts'
import { deleteDailyStats } from '../../stats/daily/stats.sql.ts'
import { firstIdAt } from '../../validation/ids.ts'
import {
  type BatchEnd,
  deleteEvents,
  deleteMessages,
  deleteOldEmails,
  deleteRequests,
  deleteSenderEvents,
  deleteWebhooks,
  type Emptied,
  emptiedUntil,
  emptyEmails,
  emptyEmailsById,
  emptyRequests,
  emptyRequestsById,
  eventsOf,
  firstTeamAt,
  type Kept,
  messagesOf,
  type RetentionBatch,
  recordEmptied,
  requestsOf,
  type SchedulePosition,
  type Span,
  scheduledBefore,
  sharesRequests,
  teamsAndWhetherTheyHave,
} from './retention.sql.ts'

/** Days that each kind is kept. Null: forever. */
export type Retention = {
  reports: number
  events: number | null
  bodies: number | null
  messages: number | null
  senders: number | null
  /** Bytes of attachments, after their last use. */
  files: number
  /** The data of daily charts. */
  figures: number | null
}

const DAY = 86_400_000
/** Rows of one statement, and the pause after it in milliseconds. */
const PURGE_BATCH = 1_000
const BATCH_PAUSE_MS = 20
/** How long bodies that could not be purged in time (locked, or still waiting) are checked again. */
const SECOND_LOOK = 7 * DAY

/** Teams per statement. */
const TEAMS_BATCH = 1_000

/** Runs `work` for each item in sequence. @returns the sum of the results. */
async function sumEach<T>(items: readonly T[], work: (item: T) => Promise<number>): Promise<number> {
  let total = 0
  for (const item of items) total += await work(item)
  return total
}

/** Processes rows in batches. @returns how many there were. */
async function inBatches(work: (batch: RetentionBatch) => Promise<BatchEnd | Emptied>, span: Span) {
  let total = 0
  for (let after = span.from; ; ) {
    const batch = await work({ after, before: span.before, until: span.until, limit: PURGE_BATCH })
    const { found, last } = batch
    total += 'done' in batch ? batch.done : found
    if (found < PURGE_BATCH || last === null) return total
    after = last
    await sleep(BATCH_PAUSE_MS)
  }
}

/** Processes the rows of each team that has any. A hundred thousand teams without rows are a hundred statements. */
async function inTeams(
  database: Database,
  kept: Kept,
  span: Span,
  work: (team: string, batch: RetentionBatch) => Promise<BatchEnd>,
): Promise<number> {
  let total = 0
  for (let after: string = NIL; ; ) {
    const teams = await teamsAndWhetherTheyHave(database, kept, span, { after, limit: TEAMS_BATCH })
    for (const { id, has_some } of teams) {
      if (has_some) total += await inBatches((batch) => work(id, batch), span)
    }
    const last = teams.at(-1)
    if (last === undefined || teams.length < TEAMS_BATCH) return total
    after = last.id
    await sleep(BATCH_PAUSE_MS)
  }
}

const before = (now: Date, days: number): Date => new Date(now.getTime() - days * DAY)

const allBefore = (until: Date): Span => ({ from: NIL, before: firstIdAt(until), until })

type Window = { from: Date; until: Date }

/** How many emails of a page of the table each of a batch's statements purges. */
const OF_A_PAGE = [1, 4, PURGE_BATCH]
/** The target time for reading a range of emails, in milliseconds, and the length of the first range. */
const STRETCH_MS = 300
const FIRST_STRETCH = 60_000

async function emptyBatch(database: Database, batch: RetentionBatch): Promise<Emptied> {
  const [few = 1, ...more] = OF_A_PAGE
  const emptied = await emptyEmails(database, batch, few)
  if (emptied.last === null) return emptied
  const same = { ...batch, before: emptied.last }
  for (const most of more) emptied.done += (await emptyEmails(database, same, most)).done
  return emptied
}

/** Scans all unscheduled emails in storage order, so that each page is written at one time. */
async function emptyAllEmails(database: Database, from: Date, until: Date): Promise<number> {
  let total = 0
  let width = FIRST_STRETCH
  for (let at = from.getTime(); at < until.getTime(); ) {
    const end = Math.min(until.getTime(), at + width)
    const began = performance.now()
    const span = { from: firstIdAt(new Date(at)), before: firstIdAt(new Date(end)), until }
    total += await inBatches((batch) => emptyBatch(database, batch), span)
    width *= Math.min(2, Math.max(0.1, STRETCH_MS / (performance.now() - began)))
    at = end
  }
  return total
}

/** Scans scheduled messages in the order of their times. Their IDs may be much older. */
async function emptyScheduled(database: Database, channel: Channel, { from, until }: Window) {
  const batch = { until, limit: PURGE_BATCH }
  let total = 0
  for (let after: SchedulePosition = { at: from.toISOString(), id: NIL }; ; await sleep(BATCH_PAUSE_MS)) {
    const found = await scheduledBefore(database, channel, after, batch)
    const last = found.at(-1)
    if (!last) return total
    total += sharesRequests(channel)
      ? await emptyRequestsById(
          database,
          channel,
          found.map(({ team_id, request_id }) => ({ team_id, id: request_id ?? NIL })),
          batch,
        )
      : await emptyEmailsById(database, found)
    after = last
  }
}

async function emptyBodies(database: Database, until: Date): Promise<number> {
  const done = await emptiedUntil(database)
  const from = done ? new Date(done.getTime() - SECOND_LOOK) : await firstTeamAt(database)
  if (from === null) return 0
  const emails = await emptyAllEmails(database, from, until)
  const span = { from: firstIdAt(from), before: firstIdAt(until), until }
  const requests = await sumEach(CHANNELS.filter(sharesRequests), (channel) =>
    inTeams(database, requestsOf(channel), span, (team, batch) =>
      emptyRequests(database, team, channel, batch),
    ),
  )
  const scheduled = await sumEach(CHANNELS, (channel) => emptyScheduled(database, channel, { from, until }))
  await recordEmptied(database, until)
  return emails + requests + scheduled
}

async function deleteOld(database: Database, until: Date): Promise<number> {
  const span = allBefore(until)
  const total = await sumEach(CHANNELS, (channel) =>
    inTeams(database, messagesOf(channel), span, (team, batch) =>
      sharesRequests(channel)
        ? deleteMessages(database, team, channel, batch)
        : database.transaction((tx) => deleteOldEmails(tx, team, channel, batch)),
    ),
  )
  for (const channel of CHANNELS.filter(sharesRequests)) {
    await inTeams(database, requestsOf(channel), span, (team, batch) =>
      deleteRequests(database, team, channel, batch),
    )
  }
  return total
}

const deleteOldEvents = (database: Database, until: Date): Promise<number> =>
  sumEach(CHANNELS, (channel) =>
    inTeams(database, eventsOf(channel), allBefore(until), (team, batch) =>
      deleteEvents(database, team, channel, batch),
    ),
  )

/** How many days webhooks are kept that were delivered, or that failed and can be replayed. */
const WEBHOOK_DAYS = [
  ['delivered', 3],
  ['failed', 30],
] as const

const deleteOldWebhooks = (database: Database, now: Date): Promise<number> =>
  sumEach(WEBHOOK_DAYS, ([status, days]) =>
    inTeams(database, messagesOf(WEBHOOK), allBefore(before(now, days)), (team, batch) =>
      deleteWebhooks(database, team, status, batch),
    ),
  )

async function deleteOldSenderEvents(database: Database, until: Date): Promise<number> {
  await deletePauseHistory(database, until)
  return inBatches((batch) => deleteSenderEvents(database, batch), allBefore(until))
}

async function deleteOldStats(database: Database, until: Date): Promise<number> {
  for (let total = 0; ; await sleep(BATCH_PAUSE_MS)) {
    const deleted = await deleteDailyStats(database, until, PURGE_BATCH)
    total += deleted
    if (deleted < PURGE_BATCH) return total
  }
}

/** One round over all teams. @returns how much was deleted. */
export async function purgeMessages(
  database: Database,
  { events, bodies, messages, senders, files, figures }: Retention,
  now: Date,
) {
  const round = (days: number | null, work: typeof deleteOld): Promise<number> | 0 =>
    days === null ? 0 : work(database, before(now, days))
  return {
    messages: await round(messages, deleteOld),
    events: await round(events, deleteOldEvents),
    bodies: await round(bodies, emptyBodies),
    senders: await round(senders, deleteOldSenderEvents),
    webhooks: await deleteOldWebhooks(database, now),
    files: await collectFiles(database, files, now),
    figures: await round(figures, deleteOldStats),
  }
}
