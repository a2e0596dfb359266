/**
 * Starts, schedules, unschedules, pauses, resumes and cancels broadcasts, in the caller's transaction.
 * Promises: each change of state is one statement that names the states it may come from, so of two at once one wins;
 * a start that is refused names everything that hinders it; everybody who was a contact when it began is met by the
 * walk, however late that was committed; what a person did is in the audit trail. Must not walk (walk.ts), nor send.
 */

import type { Caller } from '../../accounts/audit/record.ts'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { BROADCAST_QUEUES } from '../../channels/channels.sql.ts'
import { Refusal } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { audienceBlocker, domainBlocker, linkBlocker, templateBlocker, topicBlockers } from './blockers.ts'
import type { BroadcastRow, StateChange } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { type Acting, assertDomain, assertSendAt, lockOrRefusal, noteBroadcast } from './draft.ts'
import { assertSameAudience, assertSameDraft, assertSameTemplate, type Seen } from './seen.ts'
import type { BroadcastState } from './state.ts'
import { bringEmailsForward } from './waiting.sql.ts'

type Deps = Caller & { queue: Pick<Producer, 'enqueue' | 'reenqueue'>; publicUrl: string | null }

const wrongState = (
  { state }: Pick<BroadcastRow, 'state'>,
  act: string,
  from: readonly BroadcastState[],
): Refusal =>
  new Refusal('invalid_state', `the broadcast is ${state}: it can be ${act} while it is ${from.join(' or ')}`)

const blocked = ({ state }: BroadcastRow, blockers: readonly { words: string }[]): Refusal =>
  new Refusal(
    'invalid_state',
    `the broadcast is ${state} and cannot be sent: ${blockers.map(({ words }) => words).join('; ')}`,
  )

async function change(
  tx: Tx,
  row: BroadcastRow,
  what: StateChange & { act: string },
  now: Date,
): Promise<BroadcastRow> {
  const changed = await changeState(tx, row, what, now)
  if (!changed) throw wrongState(row, what.act, what.from)
  return changed
}

/** How a draft is started. `send_at` wins over the broadcast's own; `seen`: what was shown to a person who presses. */
type Start = { send_at?: string | undefined; seen?: Seen | undefined }

/**
 * Starts a draft, or schedules it when it has a time.
 * @throws Refusal not_found, domain_not_allowed, bad_request, invalid_state with everything that hinders it.
 */
export async function sendBroadcast(
  deps: Deps,
  acting: Acting,
  id: string,
  { send_at: sendAt, seen }: Start = {},
): Promise<BroadcastRow> {
  const { tx, publicUrl } = deps
  const row = await lockOrRefusal(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  const now = await serviceTime(tx)
  const send_at = sendAt ?? row.send_at
  if (row.state !== 'draft') throw wrongState(row, 'sent', ['draft'])
  assertSendAt(send_at, now)
  assertSameDraft(row, seen)
  const link = linkBlocker(publicUrl)
  const template = await templateBlocker(tx, row)
  const domain = await domainBlocker(tx, row)
  const topics = await topicBlockers(tx, row)
  const reach = await audienceBlocker(tx, row, send_at === null)
  const blockers = [...domain, ...link, ...template.blockers, ...topics, ...reach.blockers]
  if (blockers.length > 0 || publicUrl === null || template.version_id === null) throw blocked(row, blockers)
  assertSameTemplate(template.version_id, seen)
  assertSameAudience(reach.audience, seen)
  const fixed = { template_version_id: template.version_id, link_base: publicUrl.replace(/\/$/, ''), send_at }
  const started =
    send_at === null
      ? await change(
          tx,
          row,
          { act: 'sent', from: ['draft'], to: 'sending', fixed, audience: reach.audience },
          await beginningTime(tx, row.team_id),
        )
      : await change(tx, row, { act: 'sent', from: ['draft'], to: 'scheduled', fixed }, now)
  // It may have been scheduled before: the job of that time must not be the one that is waited for.
  await deps.queue.reenqueue(tx, 'expand-broadcast', [{ team_id: row.team_id, broadcast_id: row.id }])
  await noteBroadcast(deps, 'start', started)
  return started
}

/**
 * When a broadcast begins, to be asked once it is settled that it does: contacts are made under the same lock, by its
 * time, so that all that were made before are committed, and none that is made later counts (DECISIONS: Broadcasts).
 */
export async function beginningTime(tx: Tx, teamId: string): Promise<Date> {
  const { now } = await lockAccount(tx, teamId)
  // The first moment that is later, as times are kept.
  return new Date(now.getTime() + 1)
}

/** What hinders a broadcast whose template and links are fixed, and how many it would go to now. */
export async function beginning(tx: Tx, row: BroadcastRow) {
  const set = [...(await domainBlocker(tx, row)), ...(await topicBlockers(tx, row))]
  const reach = await audienceBlocker(tx, row, true)
  return { audience: reach.audience, blockers: [...set, ...reach.blockers] }
}

/** Makes a scheduled one a draft again. @throws Refusal not_found, domain_not_allowed, invalid_state. */
export async function unscheduleBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const { tx } = by
  const row = await lockOrRefusal(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  const fixed = { template_version_id: null, link_base: null, send_at: row.send_at }
  const what = { act: 'unscheduled', from: ['scheduled'], to: 'draft', fixed } as const
  const draft = await change(tx, row, what, await serviceTime(tx))
  await noteBroadcast(by, 'unschedule', draft)
  return draft
}

/** @throws Refusal not_found, domain_not_allowed, invalid_state. */
export async function pauseBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const { tx } = by
  const row = await lockOrRefusal(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  const what = { act: 'paused', from: ['sending'], to: 'paused' } as const
  const paused = await change(tx, row, what, await serviceTime(tx))
  await noteBroadcast(by, 'pause', paused)
  return paused
}

/**
 * Goes on with a paused one; one that had not begun begins now. @throws Refusal not_found, domain_not_allowed,
 * invalid_state.
 */
export async function resumeBroadcast(
  deps: Omit<Deps, 'publicUrl'>,
  acting: Acting,
  id: string,
): Promise<BroadcastRow> {
  const { tx, queue } = deps
  const row = await lockOrRefusal(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  if (row.state !== 'paused') throw wrongState(row, 'resumed', ['paused'])
  const begun = row.audience_until !== null
  const { audience, blockers } = begun
    ? {
        audience: undefined,
        blockers: [...(await domainBlocker(tx, row)), ...(await topicBlockers(tx, row))],
      }
    : await beginning(tx, row)
  if (blockers.length > 0) throw blocked(row, blockers)
  const now = begun ? await serviceTime(tx) : await beginningTime(tx, row.team_id)
  const resumed = await change(
    tx,
    row,
    { act: 'resumed', from: ['paused'], to: 'sending', ...(audience === undefined ? {} : { audience }) },
    now,
  )
  await queue.reenqueue(tx, 'expand-broadcast', [{ team_id: row.team_id, broadcast_id: row.id }])
  await bringEmailsForward(tx, row)
  for (const { job } of BROADCAST_QUEUES) await wakeOnCommit(tx, job)
  await noteBroadcast(deps, 'resume', resumed)
  return resumed
}

const CANCELLABLE: readonly BroadcastState[] = ['draft', 'scheduled', 'sending', 'paused']

/** @throws Refusal not_found, domain_not_allowed, invalid_state. */
export async function cancelBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const { tx } = by
  const row = await lockOrRefusal(tx, acting.team_id, id)
  assertDomain(acting, row.from_address)
  const what = { act: 'cancelled', from: CANCELLABLE, to: 'cancelled' } as const
  const cancelled = await change(tx, row, what, await serviceTime(tx))
  // What waits is withdrawn when it is claimed.
  await bringEmailsForward(tx, row)
  for (const { job } of BROADCAST_QUEUES) await wakeOnCommit(tx, job)
  await noteBroadcast(by, 'cancel', cancelled)
  return cancelled
}
