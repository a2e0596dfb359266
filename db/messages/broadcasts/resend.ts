/**
 * Resends an ended broadcast to the contacts that match now and have no email of it. It stays the same broadcast, so
 * that no one receives it twice. Rejected once retention has deleted some of its emails, because the previous
 * recipients are then unknown.
 */

import type { Caller } from '../../accounts/audit/record.ts'
import { missingProperties } from '../../audience/contacts/search.sql.ts'
import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/producer.ts'
import { countOf, findStats } from '../../stats/daily/broadcasts.sql.ts'
import { TEXTS } from '../texts.ts'
import { blocked, findEmailBlockers, versionToSend } from './blockers.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { type Acting, recordBroadcast, requireLocked } from './draft.ts'
import { assertSameAudience, assertSameDraft, type Seen } from './draft-version.ts'
import { ownSlots } from './readiness.ts'
import { countUnreached, deleteSkips, emailsOf, rewind } from './resend.sql.ts'
import { beginningTime, enqueueExpansion } from './start.ts'
import { stateWords } from './state.ts'

const ENDED = ['sent', 'cancelled'] as const

const refused = (words: string) => new RequestError('invalid_state', words)

/** True if a broadcast was started and has ended. */
export const isEnded = ({ state, template_version_id }: BroadcastRow): boolean =>
  ENDED.some((each) => each === state) && template_version_id !== null

/** @throws RequestError invalid_state unless the broadcast was started and has ended. */
export function assertEnded(row: BroadcastRow): void {
  if (!isEnded(row)) throw refused(fill(TEXTS.notEnded, { state: stateWords(row.state) }))
}

/**
 * The size of the audience of a resend. `lacking` of them have no value for a slot, and are skipped. `unfilled` are the
 * slots without a value in any of the latest contacts.
 */
export type Unreached = {
  audience: number
  lacking: number
  slots: readonly string[]
  unfilled: readonly string[]
}

/** Returns the slots without a default, which need a value in each contact. */
export async function requiredSlots(tx: Tx, row: BroadcastRow): Promise<string[]> {
  const version = await versionToSend(tx, row, null)
  return ownSlots(row, version.slots)
}

export async function findUnreached(tx: Tx, row: BroadcastRow): Promise<Unreached> {
  const slots = await requiredSlots(tx, row)
  const unfilled = await missingProperties(tx, row.team_id, slots)
  return { ...(await countUnreached(tx, row, slots)), slots, unfilled }
}

/** @throws RequestError not_found, domain_not_allowed, invalid_state. */
export async function sendToUnreached(
  deps: Caller & { queue: Pick<Producer, 'reenqueue'> },
  acting: Acting,
  id: string,
  seen?: Omit<Seen, 'template_version_id'>,
): Promise<BroadcastRow> {
  const { tx } = deps
  const row = await requireLocked(tx, acting, id)
  assertEnded(row)
  assertSameDraft(row, seen)
  const stats = await findStats(tx, row.team_id, [row.id])
  if ((await emailsOf(tx, row)) !== countOf(stats, 'made')) throw refused(TEXTS.emailsDeleted)
  const { audience: rest } = await countUnreached(tx, row, [])
  assertSameAudience(rest, seen)
  if (rest === 0) throw refused(fill(TEXTS.allReached, { state: row.state }))
  const met = await deleteSkips(tx, row)
  const audience = countOf(stats, 'made') + countOf(stats, 'skipped') - met + rest
  await rewind(tx, row)
  const at = await beginningTime(tx, row.team_id)
  // Checked with the account locked: a concurrent deletion of a topic locks it too, and then finds this
  // broadcast being sent.
  const { blockers } = await findEmailBlockers(tx, row, null)
  if (blockers.length > 0) throw blocked(row, blockers)
  const going = await changeState(tx, row, { from: ENDED, to: 'sending', audience }, at)
  if (!going) throw refused(TEXTS.broadcastChanging)
  await enqueueExpansion(deps, row)
  await recordBroadcast(deps, 'again', going)
  return going
}
