/**
 * Starts, schedules, unschedules, pauses, resumes and cancels broadcasts in the caller's transaction. A rejected
 * start names every blocker. Every contact created before the start is included, even if it was committed later.
 */

import type { Caller } from '../../accounts/audit/record.ts'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { type RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { TEXTS } from '../texts.ts'
import { blocked, findBlockers, findEmailBlockers } from './blockers.ts'
import type { BroadcastRow, StateChange } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { type Acting, assertSendAt, recordBroadcast, requireLocked } from './draft.ts'
import { assertSameAudience, assertSameDraft, assertSameTemplate, type Seen } from './draft-version.ts'
import { type BroadcastState, stateWords } from './state.ts'
import { expandAgain, isPausedForTeam, pauseWithTeam, wakeBroadcasts } from './team-pause.ts'
import { bringEmailsForward } from './waiting.sql.ts'

type Deps = Caller & { queue: Pick<Producer, 'reenqueue'>; publicUrl: string | null }

/** The past participles for messages, by the action in the audit log. */
const DONE = {
  start: 'sent',
  unschedule: 'unscheduled',
  pause: 'paused',
  resume: 'resumed',
  cancel: 'cancelled',
} as const
type Act = keyof typeof DONE

/** The states in which each action is allowed. */
const FROM: Readonly<Record<Act, readonly BroadcastState[]>> = {
  start: ['draft'],
  unschedule: ['scheduled'],
  pause: ['sending'],
  resume: ['paused'],
  cancel: ['draft', 'scheduled', 'sending', 'paused'],
}

const wrongState = ({ state }: BroadcastRow, act: Act): RequestError =>
  requestError('invalid_state', TEXTS.wrongState, {
    state: stateWords(state),
    action: DONE[act],
    states: FROM[act].map(stateWords).join(' or '),
  })

/** @throws RequestError invalid_state if the broadcast's state doesn't allow the action. */
export function assertState(row: BroadcastRow, act: Act): void {
  if (!FROM[act].includes(row.state)) throw wrongState(row, act)
}

const pausedForTeam = ({ state_reason }: BroadcastRow): RequestError =>
  requestError('invalid_state', TEXTS.pausedForTeam, {
    reason: state_reason === 'team_bounces' ? 'too many bounces' : 'too many complaints',
  })

async function act(
  by: Caller,
  verb: Act,
  row: BroadcastRow,
  { at, ...change }: Omit<StateChange, 'from'> & { at?: Date },
): Promise<BroadcastRow> {
  const moved = { ...change, from: FROM[verb] }
  const changed = await changeState(by.tx, row, moved, at ?? (await serviceTime(by.tx)))
  if (!changed) throw wrongState(row, verb)
  await recordBroadcast(by, verb, changed)
  return changed
}

/** Enqueues the expansion and replaces an existing job. A scheduled broadcast has one for a later time. */
export async function enqueueExpansion(
  { tx, queue }: Pick<Deps, 'tx' | 'queue'>,
  { team_id, id: broadcast_id }: BroadcastRow,
): Promise<void> {
  await queue.reenqueue(tx, 'expand-broadcast', [{ team_id, broadcast_id }])
}

/** `send_at` overrides the broadcast's own start time. `seen` is the version on the user's page. */
type Start = { send_at?: string | undefined; seen?: Seen | undefined }

/**
 * Starts a draft, or schedules it if it has a time.
 * @throws RequestError not_found, domain_not_allowed, bad_request, invalid_state with all blockers.
 */
export async function sendBroadcast(
  deps: Deps,
  acting: Acting,
  id: string,
  { send_at: sendAt, seen }: Start = {},
): Promise<BroadcastRow> {
  const { tx, publicUrl } = deps
  // The body is checked before the broadcast, like that of a change.
  if (sendAt !== undefined) assertSendAt(sendAt, await serviceTime(tx))
  const row = await requireLocked(tx, acting, id)
  const now = await serviceTime(tx)
  const send_at = sendAt ?? row.send_at
  assertState(row, 'start')
  assertSendAt(send_at, now)
  assertSameDraft(row, seen)
  const isCharged = send_at === null
  const { version_id, audience, blockers } = await findBlockers(tx, row, { publicUrl, isCharged })
  if (blockers.length > 0 || publicUrl === null || version_id === null) throw blocked(row, blockers)
  assertSameTemplate(version_id, seen)
  assertSameAudience(audience, seen)
  const fixed = { template_version_id: version_id, link_base: publicUrl.replace(/\/$/, ''), send_at }
  const goes = isCharged
    ? { to: 'sending' as const, audience, at: await beginningTime(tx, row.team_id) }
    : { to: 'scheduled' as const, at: now }
  const started = await act(deps, 'start', row, { fixed, ...goes })
  await enqueueExpansion(deps, row)
  return pauseWithTeam(tx, started, now)
}

/**
 * Returns the start time of a broadcast. Contacts are created under the same lock with its time, so that all earlier
 * contacts are committed and no later one is included (DECISIONS: Broadcasts).
 */
export async function beginningTime(tx: Tx, teamId: string): Promise<Date> {
  const { now } = await lockAccount(tx, teamId)
  // The next millisecond, because times are stored in milliseconds.
  return new Date(now.getTime() + 1)
}

/** Makes a scheduled broadcast a draft again. @throws RequestError not_found, domain_not_allowed, invalid_state. */
export async function unscheduleBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const row = await requireLocked(by.tx, acting, id)
  const fixed = { template_version_id: null, link_base: null, send_at: row.send_at }
  return act(by, 'unschedule', row, { to: 'draft', fixed })
}

/** @throws RequestError not_found, domain_not_allowed, invalid_state. */
export async function pauseBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const row = await requireLocked(by.tx, acting, id)
  return act(by, 'pause', row, { to: 'paused' })
}

/** Resumes or starts a paused broadcast. @throws RequestError not_found, domain_not_allowed, invalid_state. */
export async function resumeBroadcast(deps: Omit<Deps, 'publicUrl'>, acting: Acting, id: string) {
  const { tx } = deps
  const row = await requireLocked(tx, acting, id)
  assertState(row, 'resume')
  if (isPausedForTeam(row)) throw pausedForTeam(row)
  const hasBegun = row.audience_until !== null
  const { blockers, audience } = hasBegun
    ? { ...(await findEmailBlockers(tx, row, null)), audience: null }
    : await findBlockers(tx, row)
  if (blockers.length > 0) throw blocked(row, blockers)
  const beginning = audience === null ? {} : { audience, at: await beginningTime(tx, row.team_id) }
  const resumed = await act(deps, 'resume', row, { to: 'sending', ...beginning })
  await expandAgain(deps, row)
  return pauseWithTeam(tx, resumed, await serviceTime(tx))
}

/** @throws RequestError not_found, domain_not_allowed, invalid_state. */
export async function cancelBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const row = await requireLocked(by.tx, acting, id)
  const cancelled = await act(by, 'cancel', row, { to: 'cancelled' })
  // Waiting emails are deleted when a worker claims them.
  await bringEmailsForward(by.tx, row)
  await wakeBroadcasts(by.tx)
  return cancelled
}
