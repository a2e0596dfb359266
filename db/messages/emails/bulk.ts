/**
 * Counts a team's emails that match a filter, and requeues or deletes the counted ones in batches
 * (maintenance/background-jobs). Emails that matched or arrived later aren't changed. Counting stops at `most` emails
 * or after a time limit, and reports that.
 */
import { MAX, NIL } from 'uuid'
import { type By, record } from '../../accounts/audit/record.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { requeueableMessages } from '../../delivery/requeue.sql.ts'
import { type RequeueingMany, requeueMany } from '../../delivery/requeue.ts'
import { leaveOutSuppressed } from '../../delivery/suppressed.ts'
import { plural } from '../../plural.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { partLengths } from '../../postgres/search-parts.ts'
import { seenNow } from '../../postgres/snapshot.sql.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { firstIdAt, timeOfId } from '../../validation/ids.ts'
import { revivedTimes, type Stored, storedTimes } from '../stored-times.ts'
import { countMatching, idsAsSeen, idsMatching, idsToRequeue, waitingEmails } from './bulk.sql.ts'
import { stretches } from './id-ranges.ts'
import { removeRows } from './remove.ts'
import type { EmailCriteria, EmailPage } from './search.sql.ts'
import { type EmailFilter, needsScan, searchRange, toCriteria } from './search.ts'

type Filter = Omit<EmailFilter, 'team_id'>
const MATCHING_BATCH = 500
const WAITING_BATCH = 5_000

/** The time limit of a search for further emails. */
const MATCHING_MS = 1_000

export type Between = NonNullable<EmailCriteria['between']>

export type Counted = {
  count: number
  /** The first and last counted email. Null if none matches. */
  between: Between | null
  /** Set if time ran out. Older emails weren't checked. */
  lookedTo: Date | null
  /** When they were counted (db/postgres/snapshot.sql.ts). */
  seen: string
}

/**
 * Counts the newest matching emails, up to `most` or the time limit.
 * @param since no email of the team is older. @throws RequestError bad_request as `searchEmails`.
 */
export async function countEmails(
  { tx, now, since }: At & { since: Date },
  teamId: string,
  { filter, most }: { filter: Filter; most: number },
  patience = MATCHING_MS,
): Promise<Counted> {
  const counted: Counted = { count: 0, between: null, lookedTo: null, seen: await seenNow(tx) }
  const time = searchRange(filter, { since, now })
  for (const part of needsScan(filter) ? stretches(time, patience) : [{ from: filter.from }]) {
    const criteria = toCriteria({ ...filter, ...part })
    const { count, newest, oldest } = await countMatching(tx, teamId, criteria, most - counted.count)
    counted.count += count
    if (newest !== null && oldest !== null)
      counted.between = { newest: counted.between?.newest ?? newest, oldest }
    const isAll = counted.count === most || !needsScan(filter) || Number(part.from) <= time.first
    counted.lookedTo = isAll ? null : (part.from ?? null)
    if (isAll) break
  }
  return counted
}

type Requeueable = {
  /** Those that no provider has accepted yet. */
  waiting: number
  /** Those that a server rejected. */
  rejected: number
  /** Those that stay unsent, because their recipients are all suppressed. */
  suppressed: number
  /** False if time ran out. There may be more. */
  isAll: boolean
}

/** `secrets` can be null if the team has no erased addresses. */
type Checking = { tx: Tx; secrets: RequeueingMany['secrets'] }

/** Returns the emails that have a recipient who isn't suppressed. */
async function withoutSuppressed<E extends { id: string }>(
  at: Checking,
  teamId: string,
  emails: readonly E[],
): Promise<readonly E[]> {
  const refs = emails.map(({ id }) => ({ team_id: teamId, id }))
  const { left } = await leaveOutSuppressed(at, EMAIL, teamId, refs)
  const ids = new Set(left.map(({ id }) => id))
  return emails.filter(({ id }) => ids.has(id))
}

/** Counts the matching emails between two IDs that can be sent again. */
export async function countRequeueable(
  at: Checking,
  teamId: string,
  { filter, between }: { filter: Filter; between: Between },
  patience = MATCHING_MS,
): Promise<Requeueable> {
  const criteria = { ...toCriteria(filter), between }
  const count = { waiting: 0, rejected: 0, suppressed: 0 }
  let before: string | undefined
  for (const limit of partLengths({ first: WAITING_BATCH, longest: WAITING_BATCH }, patience)) {
    const batch = await waitingEmails(at.tx, teamId, criteria, { before, limit })
    const matching = batch.filter(({ fits }) => fits)
    const open = await withoutSuppressed(at, teamId, matching)
    for (const { waits } of open) count[waits ? 'waiting' : 'rejected'] += 1
    count.suppressed += matching.length - open.length
    if (batch.length < limit) return { ...count, isAll: true }
    before = batch.at(-1)?.id
  }
  return { ...count, isAll: false }
}

/** Requeues chosen emails that no provider has accepted. Skips suppressed recipients. @returns how many. */
export async function requeueChosen(by: By & RequeueingMany, teamId: string, ids: readonly string[]) {
  const changed = await requeueMany(by, EMAIL, { teamId, ids, force: false })
  await recordChosen(by, teamId, 'email.requeue', changed)
  return changed.length
}

/** Counts the chosen emails. `open` ones can be sent again. `suppressed` ones have no other recipients. */
export async function countChosen(at: Checking, teamId: string, ids: readonly string[]) {
  const part = { after: NIL, until: MAX, limit: ids.length }
  const refs = await requeueableMessages(at.tx, EMAIL, teamId, { ids, force: false }, part)
  const open = await withoutSuppressed(at, teamId, refs)
  return { open: open.length, suppressed: refs.length - open.length }
}

/** Returns true if any chosen email still exists. */
export async function isStored(tx: Tx, teamId: string, ids: readonly string[]): Promise<boolean> {
  const seen = await seenNow(tx)
  return (await idsAsSeen(tx, teamId, ids, { seen, part: 'state' })).length > 0
}

/** @returns how many were deleted. */
export async function deleteChosen(by: By, teamId: string, ids: readonly string[]): Promise<number> {
  const removed = await removeRows(by.tx, teamId, ids)
  await recordChosen(by, teamId, 'email.delete', removed)
  return removed.length
}

async function recordChosen(
  by: By,
  team_id: string,
  action: string,
  changed: readonly { id: string }[],
): Promise<void> {
  if (changed.length === 0) return
  const detail = changed.map(({ id }) => id).join(', ')
  await record(by, { team_id, action, subject: plural(changed.length, 'email'), detail })
}

/** The emails to change. They match and are between these IDs, and did so at `seen`. At most `most`. */
type Matching = { filter: Stored<Filter>; between: Between; most: number; seen: string }

/** The matching emails to requeue. */
export type MatchingRequeue = Matching & {
  force: boolean
  /** The time of the requeue. Absent: each batch uses its own. */
  at?: string | undefined
  /** True for the CLI: only unfinished emails are read. Version 0.1.0 reads all matching emails. */
  waiting?: boolean | undefined
}
/** How many emails were processed, and the last ID that was checked. */
export type BatchCursor = { taken: number; before?: string | undefined }

/** Returns the next IDs to change, and where to continue. Null at the end. */
async function nextIds(tx: Tx, teamId: string, { filter, between }: Matching, { before, limit }: EmailPage) {
  const wanted = revivedTimes(filter)
  const criteria = { ...toCriteria(wanted), between }
  if (!needsScan(wanted)) {
    const ids = await idsMatching(tx, teamId, criteria, { before, limit })
    return { ids, before: ids.length < limit ? null : (ids.at(-1) ?? null) }
  }
  const ids: string[] = []
  const time = { first: timeOfId(between.oldest), last: timeOfId(before ?? between.newest) + 1 }
  let reached = before
  for (const part of stretches(time, MATCHING_MS)) {
    const page = { before: ids.at(-1) ?? before, limit: limit - ids.length }
    ids.push(...(await idsMatching(tx, teamId, { ...criteria, ...part }, page)))
    if (ids.length === limit) return { ids, before: ids.at(-1) ?? null }
    reached = part.from.getTime() <= time.first ? undefined : firstIdAt(part.from)
  }
  return { ids, before: reached ?? null }
}

/** Returns the IDs that were counted. Only an email's status, failure and provider IDs can start to match later. */
const counted = async (tx: Tx, teamId: string, { filter, seen }: Matching, ids: readonly string[]) => {
  if (ids.length === 0) return []
  const { status, id, failed } = filter
  const part = status === undefined && id === undefined ? 'accepted' : 'state'
  return idsAsSeen(tx, teamId, ids, { seen, part: failed ? 'failure' : part })
}

/** Returns the next waiting emails that match, and where to continue. Null at the end. */
async function nextWaiting(
  tx: Tx,
  teamId: string,
  { filter, between }: Matching,
  { before, limit }: EmailPage,
) {
  const criteria = { ...toCriteria(revivedTimes(filter)), between }
  const batch = await waitingEmails(tx, teamId, criteria, { before, limit: WAITING_BATCH })
  const fitting = batch.filter(({ fits }) => fits).map(({ id }) => id)
  const ids = fitting.slice(0, limit)
  return { ids, before: (fitting.length > ids.length ? ids.at(-1) : batch.at(WAITING_BATCH - 1)?.id) ?? null }
}

/** Finds the next counted emails after `done` earlier ones, newest first, and where to continue. */
export async function matchingEmails(
  tx: Tx,
  teamId: string,
  wanted: Matching & Pick<MatchingRequeue, 'waiting'>,
  { before, done }: { before: string | undefined; done: number },
): Promise<{ ids: readonly string[]; cursor: BatchCursor | null }> {
  const page = { before, limit: MATCHING_BATCH }
  const next = wanted.waiting
    ? await nextWaiting(tx, teamId, wanted, page)
    : await nextIds(tx, teamId, wanted, page)
  const known = wanted.waiting ? next.ids : await counted(tx, teamId, wanted, next.ids)
  const ids = known.slice(0, wanted.most - done)
  const taken = done + ids.length
  return { ids, cursor: next.before !== null && taken < wanted.most ? { taken, before: next.before } : null }
}

/** Returns a team's matching emails that no provider has accepted, read in batches. */
async function readWaiting(tx: Tx, teamId: string, criteria: EmailCriteria): Promise<readonly string[]> {
  const ids: string[] = []
  for (let before: string | undefined; ; ) {
    const batch = await waitingEmails(tx, teamId, criteria, { before, limit: WAITING_BATCH })
    ids.push(...batch.filter(({ fits }) => fits).map(({ id }) => id))
    if (batch.length < WAITING_BATCH) return ids
    before = batch.at(-1)?.id
  }
}

/** Returns the stored form of a requeue of the emails between two IDs, with its filter instead of the IDs. */
export const requeueToStore = (
  { force, ...filter }: Filter & { force: boolean },
  { between, at, seen }: Pick<Matching, 'between' | 'seen'> & { at: string },
): MatchingRequeue => ({
  ...{ filter: storedTimes(filter), between, seen, force, at },
  most: Number.MAX_SAFE_INTEGER,
  waiting: !force && needsScan(filter),
})

/** Counts a team's matching emails that can be requeued. With `force`, includes rejected ones. */
export async function emailsToRequeue(
  tx: Tx,
  teamId: string,
  { force, ...filter }: Filter & { force: boolean },
): Promise<readonly string[]> {
  const criteria = toCriteria(filter)
  if (filter.recipient !== undefined || filter.id !== undefined) return idsToRequeue(tx, teamId, criteria)
  if (!force) return readWaiting(tx, teamId, criteria)
  const time = searchRange(filter, { since: new Date(0), now: await serviceTime(tx) })
  const ids: string[] = []
  for (const part of stretches(time, Number.POSITIVE_INFINITY))
    ids.push(...(await idsToRequeue(tx, teamId, { ...criteria, ...part })))
  return ids
}
