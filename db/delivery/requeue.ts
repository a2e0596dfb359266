/**
 * Gives undelivered messages a new job, and records failures in timelines. A message that the provider accepted
 * doesn't change. A row never has two jobs, because the job's ID is the row's. Rows, jobs and timelines change
 * together. A manual requeue resets attempts and deadline, the sweep's doesn't. A failure is recorded once until the
 * next reset.
 */

import { NIL } from 'uuid'
import { type By, record } from '../accounts/audit/record.ts'
import { teamById } from '../accounts/teams/teams.sql.ts'
import type { Deliverable, DeliveryJob, DeliveryRef } from '../channels/channel.sql.ts'
import { deliveryFrom, sendsFor, servedBy } from '../channels/channels.sql.ts'
import { EMAIL } from '../channels/email.sql.ts'
import { storeEvents } from '../channels/events/store-events.ts'
import { deletedFilesError, findMissingFiles } from '../content/files/reuse.ts'
import { type RequestError, requestError } from '../errors.ts'
import { fill } from '../fill.ts'
import type { At, Tx } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import { NO_ANSWER, type Payload } from '../queue/jobs.ts'
import { pausedQueues } from '../queue/pauses.sql.ts'
import type { Producer } from '../queue/producer.ts'
import { assertSeen, changedMeanwhile } from '../validation/mark.ts'
import {
  type DeliveryState,
  deliveryState,
  findDeadLettered,
  type How,
  markFailed,
  markRequeued,
  type Note,
  requeueableMessages,
} from './requeue.sql.ts'
import { pausedSenders } from './senders/senders.sql.ts'
import { assertNotSuppressed, leaveOutSuppressed } from './suppressed.ts'
import { TEXTS } from './texts.ts'

type Requeueing = At & { queue: Pick<Producer, 'reenqueue'> }
/** `secrets` can be null if the team has no erased addresses. */
export type RequeueingMany = Requeueing & { secrets: Pick<Secrets, 'signatures'> | null }

/** Returns the timeline entry for a failed message. `since`: when its attempts started to count. */
export const gaveUpNote = (
  { since, ...ref }: DeliveryRef & { since: string },
  detail: string,
  now: Date,
): Note => ({ ...ref, event_key: `gave_up:${since}`, kind: 'gave_up', occurred_at: now, detail })

export const requeueNote = ({ team_id, id }: DeliveryRef, now: Date): Note => ({
  ...{ team_id, id, event_key: `requeued:${now.toISOString()}` },
  kind: 'requeued',
  occurred_at: now,
  detail: '',
})

/** Adds jobs that became dead letters to their messages' timelines, up to `limit` of them. @returns how many. */
export async function recordDeadLettered({ tx, now }: At, channel: Deliverable, limit: number) {
  const messages = await findDeadLettered(tx, channel, limit)
  if (messages.length === 0) return 0
  const notes = messages.map(({ reason, ...ref }) => gaveUpNote(ref, reason || NO_ANSWER, now))
  await markFailed(tx, channel, messages)
  return (await storeEvents(tx, channel, notes)).length
}

/** Keeps the attachments of messages from being deleted. @returns the messages whose attachments are missing. */
const keepFiles = async (tx: Tx, channel: Deliverable, refs: readonly DeliveryRef[]) =>
  channel.name === EMAIL.name && refs.length > 0 ? findMissingFiles(tx, refs) : []

/** Marks the messages that no provider has accepted, and records it in their timelines. @returns those messages. */
async function recordRequeued({ tx, now }: At, channel: Deliverable, refs: readonly DeliveryRef[], how: How) {
  const gone = new Set((await keepFiles(tx, channel, refs)).map(({ id }) => id))
  const whole = refs.filter(({ id }) => !gone.has(id))
  if (whole.length === 0) return []
  const requeued = await markRequeued(tx, channel, whole, { ...how, now })
  const notes = requeued.map((ref) => requeueNote(ref, now))
  await storeEvents(tx, channel, notes)
  return requeued
}

export async function recordRedriven<J extends DeliveryJob>(
  at: At,
  channel: Deliverable<J>,
  payloads: readonly Payload<J>[],
): Promise<void> {
  const refs = payloads.map((payload) => channel.payload.ref(payload))
  await recordRequeued(at, channel, refs, { by: 'person', force: channel.given_up_as !== null })
}

/** Requeues the messages that no provider has accepted, each in its own queue. @returns those messages. */
export async function requeueMessages(
  { tx, queue, now }: Requeueing,
  channel: Deliverable,
  refs: readonly DeliveryRef[],
  how: How,
): Promise<readonly DeliveryRef[]> {
  const requeued = await recordRequeued({ tx, now }, channel, refs, how)
  for (const [job, own] of Map.groupBy(requeued, (each) => each.job)) {
    const payloads = own.map((each) => deliveryFrom(job).payload.of(each))
    await queue.reenqueue(tx, job, payloads)
  }
  return requeued.map(({ team_id, id }) => ({ team_id, id }))
}

/**
 * Requeues a team's filtered or selected messages, except those to suppressed recipients only.
 * @returns the requeued messages.
 */
export async function requeueMany(
  { secrets, ...at }: RequeueingMany,
  channel: Deliverable,
  { teamId, ids, force }: { teamId: string; ids: readonly string[]; force: boolean },
): Promise<readonly DeliveryRef[]> {
  const refs = ids.map((id) => ({ team_id: teamId, id }))
  const { left } = await leaveOutSuppressed({ tx: at.tx, secrets }, channel, teamId, refs)
  return requeueMessages(at, channel, left, { by: 'person', force })
}

/** The stored form of a manual selection in a background job. Its times are text. */
export type PickedByPerson = {
  ids?: readonly string[] | undefined
  status?: string | undefined
  since?: string | undefined
  force: boolean
  /** The last message at the time of the selection. */
  until: string
  /** When attempts and deadline start to count. */
  at: string
}

/** Where the next batch starts. */
export type PickedCursor = { after: string }

const REQUEUE_BATCH = 500

/**
 * Finds the next messages of a manual selection, and where to continue.
 * @param find returns the next IDs for a filter of the channel, oldest first. Version 0.1.0 stored `ids` instead.
 */
export async function pickedMessages(
  tx: Tx,
  channel: Deliverable,
  teamId: string,
  { since, until, ids, status, force }: PickedByPerson,
  cursor: PickedCursor | null,
  find?: (part: { after: string; until: string; limit: number }) => Promise<readonly string[]>,
): Promise<{ ids: readonly string[]; cursor: PickedCursor | null }> {
  const part = { after: cursor?.after ?? NIL, until, limit: REQUEUE_BATCH }
  const found = await find?.(part)
  const wanted = {
    ids: found ?? ids,
    status,
    since: since === undefined ? undefined : new Date(since),
    force,
  }
  const open = (await requeueableMessages(tx, channel, teamId, wanted, part)).map(({ id }) => id)
  const looked = found ?? open
  const last = looked.length < REQUEUE_BATCH ? undefined : looked.at(-1)
  return { ids: open, cursor: last ? { after: last } : null }
}

/**
 * Requeues one message, and writes the audit log.
 * @param words a detail for the audit log.
 * @param seen the way that a page showed, or null for the CLI. A scheduled message is sent without confirmation, a
 * rejected one isn't.
 * @throws RequestError not_found. bad_request if a provider has accepted it. invalid_state if the way has changed, or
 * if it is a broadcast's email to a suppressed address.
 */
export async function requeueOne(
  { queue, ...by }: By & Requeueing,
  channel: Deliverable,
  ref: DeliveryRef,
  { force, words = '', seen = null }: { force: boolean; words?: string; seen?: string | null },
): Promise<void> {
  const way = force ? requeueWay(await deliveryState(by.tx, channel, ref)) : null
  const was = way === null || way === 'plain' ? '' : WAS[way]
  if (way !== null && way !== 'plain') await assertForcible(by.tx, channel, ref, { way, seen })
  const how: How = { by: 'person', force, named: true }
  const requeued = await requeueMessages({ ...by, queue }, channel, [ref], how)
  if (requeued.length === 0) throw await requeueError(by.tx, channel, ref, seen)
  const { team_id, id: subject } = ref
  const detail = [words, was].filter((each) => each !== '').join(', ')
  await record(by, { team_id, action: `${channel.name}.requeue`, subject, detail })
}

/**
 * For the question before a requeue by force, and for a dry run.
 * @param seen the way that a page showed, or null for the CLI.
 * @throws RequestError if the message can't be requeued that way.
 */
export async function assertRequeueable(
  tx: Tx,
  channel: Deliverable,
  ref: DeliveryRef,
  seen: keyof typeof WAS | null,
): Promise<void> {
  const way = requeueWay(await deliveryState(tx, channel, ref))
  if (way === null) throw await requeueError(tx, channel, ref, seen)
  await assertForcible(tx, channel, ref, { way, seen })
}

/** @throws RequestError invalid_state, because a worker deletes a broadcast's email to a suppressed address. */
async function assertForcible(
  tx: Tx,
  channel: Deliverable,
  ref: DeliveryRef,
  { way, seen }: { way: string; seen: string | null },
): Promise<void> {
  assertSeen(seen, way, fill(TEXTS.messageChanged, { noun: channel.noun }))
  await assertNotSuppressed(tx, channel, ref)
}

/** The detail in the audit log for a forced requeue. */
const WAS = {
  forced: 'it had been rejected',
  scheduled: 'it was scheduled',
  expired: 'it had expired',
} as const

/**
 * Returns how a message can be requeued: plainly, by force if it was rejected, scheduled or expired, or not at all.
 * For pages. Requeueing checks again.
 */
export function requeueWay(state: DeliveryState): 'plain' | keyof typeof WAS | null {
  if (state === null || state.emptied) return null
  if (state.due_at !== null) return 'scheduled'
  if (state.expired) return 'expired'
  if (state.unfinished || state.timed_out) return 'plain'
  return state.refused ? 'forced' : null
}

/**
 * Returns the pauses that a team's requeued messages still wait for, including its suspension. `reason` null: manual.
 * @param sender the key of the message's sender, if the channel has many.
 */
export async function loadPauses(
  tx: Tx,
  given: Deliverable,
  { team_id, sender }: { team_id: string; sender?: string | undefined },
): Promise<{ what: string; until: string | null; reason: string | null }[]> {
  const team = await teamById(tx, team_id)
  const channel = servedBy(given, { test: team?.test ?? false })
  const suspended = team?.suspended_at != null
  const teams = suspended ? [{ what: `team ${team.name}`, until: null, reason: 'suspended' }] : []
  const pause = (await pausedQueues(tx)).get(channel.job)
  const queues = pause ? [{ what: `queue ${channel.job}`, until: null, reason: pause.reason }] : []
  const senders = (await pausedSenders(tx, { key: sender, team: team_id })).filter((each) =>
    sendsFor(channel, each.sender),
  )
  return [
    ...teams,
    ...queues,
    ...senders.map(({ sender: key, ...pause }) => ({ what: `sender ${key}`, ...pause })),
  ]
}

export const purgedError = ({ noun }: Pick<Deliverable, 'noun'>): RequestError =>
  requestError('bad_request', TEXTS.contentDeleted, { noun })

/** @param seen the way on the page, or null for the CLI, whose messages name its options. */
export async function requeueError(
  tx: Tx,
  channel: Deliverable,
  ref: DeliveryRef,
  seen: string | null = null,
): Promise<RequestError> {
  const { noun } = channel
  const state = await deliveryState(tx, channel, ref)
  if (state === null) return requestError('not_found', TEXTS.noMessage, { noun, id: ref.id })
  const { status, due_at, emptied, refused, expired, handed_over_as } = state
  if (state.newer) return requestError('bad_request', TEXTS.newerVersion, { noun })
  const way = requeueWay(state)
  if (seen !== null && way !== null && way !== 'plain')
    return changedMeanwhile(fill(TEXTS.messageChanged, { noun }))
  if (due_at !== null) return requestError('invalid_state', TEXTS.scheduled, { noun, time: due_at })
  if (emptied && (refused || expired)) return purgedError(channel)
  if (expired) return requestError('invalid_state', TEXTS.expired, { noun })
  const gone = handed_over_as === null ? await keepFiles(tx, channel, [ref]) : []
  if (gone.length > 0) return deletedFilesError(gone)
  if (refused) return requestError('bad_request', TEXTS.rejected, { noun, status })
  const proof =
    handed_over_as === null
      ? fill(TEXTS.statusIs, { status })
      : fill(TEXTS.acceptedAs, { id: handed_over_as })
  return requestError('bad_request', TEXTS.alreadyAccepted, { noun, proof })
}
