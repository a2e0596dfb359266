/**
 * Expands a broadcast into emails, one step at a time. The emails, their charge, their jobs, the skips and the cursor
 * are stored in one transaction. An address gets at most one email, even if workers are killed or a contact is
 * created again. The quota is never exceeded, and the backlog of emails is bounded.
 */

import type { RampStart } from '../../accounts/domains/ramp.ts'
import { left, lockAccount } from '../../accounts/teams/limits.ts'
import { findSuppressed } from '../../audience/suppressions/suppressed.ts'
import { versionsByIds } from '../../content/templates/templates.sql.ts'
import type { Versions } from '../../content/templates/versions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Producer } from '../../queue/producer.ts'
import { countOf, findStats } from '../../stats/daily/broadcasts.sql.ts'
import { acceptEmails } from '../emails/accept.ts'
import type { EmailItem } from '../emails/call.ts'
import { broadcastToken, unsubscribeUrl } from '../emails/unsubscribe-token.ts'
import { contactsLeft, type Member, nextMembers } from './audience.sql.ts'
import { type Brakes, checkAutoPause } from './auto-pause.ts'
import { findBlockers } from './blockers.ts'
import { type BroadcastRow, lockBroadcast, moveCursor, readSendingPlace } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { domainOf } from './draft.ts'
import { addressed, type Mailing, toMailing } from './mailing.ts'
import { startRamp } from './ramp.ts'
import { insertSkips, type Skip } from './skips.sql.ts'
import { beginningTime } from './start.ts'
import { pauseForTeam } from './team-pause.ts'
import { countWaitingEmails, isUnderWay } from './waiting.sql.ts'

type WalkDeps = {
  tx: Tx
  queue: Pick<Producer, 'enqueue' | 'storing' | 'reached'>
  versions: Versions
  secrets: Secrets
  /** The maximum number of its emails that wait. */
  ahead: number
  brakes: Brakes
  /** True for an address that is suppressed by its name, in a test team or any other. Absent: none is. */
  isSuppressedByName?: (address: string, test: boolean) => boolean
  /** How to ramp up domains without history. Absent: no ramp. */
  ramp?: RampStart | null
}

/**
 * The result of a step. `moved`: there is more. `full`: enough emails wait. `walked`: all contacts are done, and
 * emails still wait. `early`: it starts, or checks again, in `seconds`. `over`: nothing left to do in this state.
 */
export type ExpansionStep =
  | { kind: 'moved' | 'full' | 'walked' | 'over' }
  | { kind: 'early'; seconds: number }

/** Emails per transaction. The team's account is locked while they are stored. */
const EXPAND_BATCH = 200
/** How many emails can wait, even at the lowest rate. */
const LEAST_AHEAD = 20
/** Contacts that one step looks at, however few of them fit. */
const MAX_READ = 10_000
/** A broadcast that is later than this isn't started automatically, in milliseconds. */
const OVERDUE_MS = 3_600_000
/** How often a broadcast of a suspended team checks again, in seconds. */
const SUSPENDED_WAIT = 30
/** The same after a failover, or on a copy that is being paused, in seconds. */
const UNSETTLED_WAIT = 2

type Version = { version_id: string; slots: readonly string[] }

const OVER: ExpansionStep = { kind: 'over' }

export async function expandStep(deps: WalkDeps, teamId: string, id: string): Promise<ExpansionStep> {
  const { tx } = deps
  const row = await lockBroadcast(tx, teamId, id)
  if (row?.state !== 'sending' && row?.state !== 'scheduled') return OVER
  const now = await serviceTime(tx)
  const { is_home, is_suspended, is_test, bulk_pause } = await readSendingPlace(tx, row)
  if (!is_home) return { kind: 'early', seconds: UNSETTLED_WAIT }
  if (is_suspended) return { kind: 'early', seconds: SUSPENDED_WAIT }
  if (row.state === 'scheduled') return begin(deps, row, now)
  if (bulk_pause !== null) {
    await pauseForTeam(tx, row, bulk_pause, now)
    return OVER
  }
  if (row.cursor === null && !is_test) await startRamp(tx, domainOf(row.from_address), deps.ramp ?? null)
  const brake = await checkAutoPause(tx, row, deps.brakes)
  if (brake !== null) return pause(deps, row, brake, now)
  if (row.walked_at !== null) return finish(tx, row, now)
  const ahead = limitAhead(row, deps)
  const room = ahead - (await countWaitingEmails(tx, row, ahead))
  const isNamed = (address: string) => deps.isSuppressedByName?.(address, is_test) ?? false
  return room <= 0
    ? { kind: 'full' }
    : expand(deps, row, { most: Math.min(room, EXPAND_BATCH), isNamed }, now)
}

/**
 * Returns how many emails can wait. With a rate limit, those of one minute, because each waiting email is checked
 * again.
 */
const limitAhead = ({ rate_per_minute }: BroadcastRow, { ahead }: WalkDeps): number =>
  rate_per_minute === null ? ahead : Math.min(ahead, Math.max(LEAST_AHEAD, rate_per_minute))

/** Pauses the broadcast until it is resumed manually, and notifies the team's owners. */
async function pause({ tx, queue }: WalkDeps, row: BroadcastRow, reason: string, now: Date) {
  const { team_id, id } = row
  await changeState(tx, row, { from: ['scheduled', 'sending'], to: 'paused', reason }, now)
  await queue.enqueue(tx, 'mail-owners', [{ team_id, broadcast_id: id, notice_id: idNow() }])
  return OVER
}

async function begin(deps: WalkDeps, row: BroadcastRow, now: Date): Promise<ExpansionStep> {
  const { tx } = deps
  const late = now.getTime() - Date.parse(row.send_at ?? now.toISOString())
  if (late < 0) return { kind: 'early', seconds: -late / 1_000 }
  if (late > OVERDUE_MS) return pause(deps, row, 'overdue', now)
  const { audience, blockers } = await findBlockers(tx, row)
  const [first] = blockers
  if (first) return pause(deps, row, first.kind, now)
  const at = await beginningTime(tx, row.team_id)
  await changeState(tx, row, { from: ['scheduled'], to: 'sending', audience }, at)
  return { kind: 'moved' }
}

/** Ends the broadcast if no email waits. Failed emails need manual action and don't delay the end. */
async function finish(tx: Tx, row: BroadcastRow, now: Date): Promise<ExpansionStep> {
  if (await isUnderWay(tx, row)) return { kind: 'walked' }
  const stats = await findStats(tx, row.team_id, [row.id])
  const audience = countOf(stats, 'made') + countOf(stats, 'skipped')
  await changeState(tx, row, { from: ['sending'], to: 'sent', audience }, now)
  return OVER
}

/** Returns the mailing of a started broadcast, with the version fixed at its start. */
async function fixedMailing(tx: Tx, row: BroadcastRow): Promise<{ mailing: Mailing; version: Version }> {
  const id = row.template_version_id ?? ''
  const [version] = await versionsByIds(tx, [{ team_id: row.team_id, id }])
  if (!version) throw new Error(`broadcast ${row.id} has lost its template version`)
  return { mailing: toMailing(row, version.slots), version: { version_id: id, slots: version.slots } }
}

function madeFor(mailing: Mailing, member: Member, secrets: Secrets): EmailItem | string {
  const { team_id, id: broadcast_id, link_base } = mailing.row
  const { id: contact_id, identity: person } = member
  const token = broadcastToken(secrets, { team_id, broadcast_id, person })
  const made = addressed(mailing, member, unsubscribeUrl(link_base ?? '', token))
  return typeof made === 'string' ? made : { ...made, contact_id, person }
}

const SUPPRESSED = 'suppressed'

type Picked = { member: Member; made: EmailItem | string }

/** Keeps the contacts that fit into the quota. The others follow when there is quota again. */
function withinQuota(picked: readonly Picked[], quota: number) {
  const items = picked.flatMap(({ made }) => (typeof made === 'string' ? [] : [made]))
  const stop = items[quota]
  const end = stop ? picked.findIndex(({ made }) => made === stop) : picked.length
  return { met: picked.slice(0, end), items: items.slice(0, quota), isCut: stop !== undefined }
}

/** Stores the emails of the next members, as far as quota and `most` allow. */
async function expand(
  deps: WalkDeps,
  row: BroadcastRow,
  { most, isNamed }: { most: number; isNamed: (address: string) => boolean },
  now: Date,
): Promise<ExpansionStep> {
  const { tx, secrets } = deps
  const until = row.audience_until ?? now.toISOString()
  const next = await nextMembers(tx, { ...row, until }, { after: row.cursor, look: MAX_READ, limit: most })
  if (next.members.length === 0) {
    await moveCursor(tx, row, next, now)
    return { kind: 'moved' }
  }
  const { mailing, version } = await fixedMailing(tx, row)
  const identities = next.members.map(({ identity }) => identity)
  const suppressed = await findSuppressed(tx, secrets, row.team_id, identities)
  const picked = next.members.map((member) => ({
    member,
    made:
      suppressed.has(member.identity) || isNamed(member.email)
        ? SUPPRESSED
        : madeFor(mailing, member, secrets),
  }))
  const { limits, used } = await lockAccount(tx, row.team_id)
  // A contact may have been erased since it was picked. Nothing may name it any longer.
  const ids = next.members.map(({ id }) => id)
  const there = await contactsLeft(tx, row.team_id, ids)
  const all = picked.filter(({ member }) => there.has(member.id))
  const { met, items, isCut } = withinQuota(all, left(limits.emails, used.emails))
  const refused = await storeEmails(deps, { row, version }, items)
  if (refused === 'domain') return pause(deps, row, 'from_domain_not_verified', now)
  const skips = met.flatMap(({ member, made }) => {
    const detail = typeof made === 'string' ? made : refused.get(member.id)
    return detail === undefined ? [] : [toSkip(row, member, detail)]
  })
  await insertSkips(tx, skips, now)
  const cursor = isCut ? (met.at(-1)?.member.id ?? row.cursor) : next.cursor
  await moveCursor(tx, row, { cursor, ended: next.ended && !isCut }, now)
  return isCut ? pause(deps, row, 'quota_exceeded', now) : { kind: 'moved' }
}

const toSkip = ({ team_id, id }: BroadcastRow, member: Member, detail: string): Skip => ({
  team_id,
  broadcast_id: id,
  contact_id: member.id,
  email: member.email,
  ...(detail === SUPPRESSED ? { reason: 'suppressed', detail: '' } : { reason: 'variables', detail }),
})

/**
 * @returns the reasons for contacts whose email was rejected, by ID, or `domain` if the sender's domain isn't
 * verified.
 */
async function storeEmails(
  { tx, queue, versions }: WalkDeps,
  { row, version }: { row: BroadcastRow; version: Version },
  items: readonly EmailItem[],
): Promise<Map<string, string> | 'domain'> {
  if (items.length === 0) return new Map()
  const sender = { team_id: row.team_id, domain: null, broadcast_id: row.id, version }
  const outcomes = await acceptEmails({ tx, queue, versions, links: null }, sender, items)
  const refused = new Map<string, string>()
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'refused') continue
    if (outcome.refusal.code === 'from_domain_not_verified') return 'domain'
    refused.set(items[index]?.contact_id ?? '', outcome.refusal.message)
  }
  return refused
}
