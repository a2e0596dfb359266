/** Finds everything that keeps a broadcast from being sent. A test only checks the template and its links. */

import { domainByName } from '../../accounts/domains/domains.sql.ts'
import { left, toAccount } from '../../accounts/teams/limits.ts'
import { readAccountRow } from '../../accounts/teams/teams.sql.ts'
import { topicsOfTeam } from '../../audience/contacts/topics.sql.ts'
import { templateById, versionsByIds } from '../../content/templates/templates.sql.ts'
import { type RequestError, requestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Tx } from '../../postgres/pool.ts'
import { UNSUBSCRIBE_SLOT } from '../../validation/slots.ts'
import { TEXTS } from '../texts.ts'
import { audienceSize } from './audience.sql.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { domainOf } from './draft.ts'

/** A reason not to start. */
export type Blocker = {
  /** Why a scheduled broadcast is paused if it finds this at its start time. */
  kind: 'from_domain_not_verified' | 'topic_gone' | 'no_audience' | 'quota_exceeded' | 'set_up'
  words: string
  /** The part of the broadcast to edit. Undefined if an edit doesn't help. */
  edit?: 'message' | 'audience'
}

/** Mail clients only follow a one-click link over https. Loopback addresses are allowed for local tests. */
const REACHABLE = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$))/i

function linkBlockers(publicUrl: string | null): Blocker[] {
  if (publicUrl !== null && REACHABLE.test(publicUrl)) return []
  const words = TEXTS.publicUrlUnset
  return [{ kind: 'set_up', words }]
}

/** `version_id` null: the template has no version, or its version has no unsubscribe link. */
type VersionToSend = { version_id: string | null; slots: string[]; blockers: Blocker[] }

/** Returns the version that would be sent if none is fixed. */
export async function newestVersion(
  tx: Tx,
  { team_id, template_id }: BroadcastRow,
  publicUrl: string | null,
): Promise<VersionToSend> {
  const template = await templateById(tx, team_id, template_id)
  const slots = template?.slots ?? []
  const blockers = linkBlockers(publicUrl)
  if (template && slots.includes(UNSUBSCRIBE_SLOT))
    return { version_id: template.version_id, slots, blockers }
  const words = template
    ? fill(TEXTS.noUnsubscribeLink, { name: UNSUBSCRIBE_SLOT })
    : fill(TEXTS.noTemplate, { id: template_id })
  return { version_id: null, slots, blockers: [...blockers, { kind: 'set_up', words, edit: 'message' }] }
}

/** Returns the fixed version, otherwise the newest. @param publicUrl used until the links are fixed. */
export async function versionToSend(
  tx: Tx,
  row: BroadcastRow,
  publicUrl: string | null,
): Promise<VersionToSend> {
  const { team_id, template_version_id: id } = row
  if (id === null) return newestVersion(tx, row, publicUrl)
  const [version] = await versionsByIds(tx, [{ team_id, id }])
  return { version_id: id, slots: version?.slots ?? [], blockers: [] }
}

async function domainBlockers(tx: Tx, { team_id, from_address }: BroadcastRow): Promise<Blocker[]> {
  const name = domainOf(from_address)
  const domain = await domainByName(tx, team_id, name)
  if (domain?.status === 'verified') return []
  const words = domain ? fill(TEXTS.fromPending, { name }) : fill(TEXTS.fromUnverified, { name })
  return [{ kind: 'from_domain_not_verified', words }]
}

/** Finds the deleted topics of a broadcast. Without a deleted excluded topic, it would reach more contacts. */
async function topicBlockers(
  tx: Tx,
  { team_id, topic_ids, exclude_topic_ids }: BroadcastRow,
): Promise<Blocker[]> {
  const there = new Set((await topicsOfTeam(tx, team_id)).map(({ id }) => id))
  const gone = (ids: readonly string[], what: string): Blocker[] =>
    ids
      .filter((id) => !there.has(id))
      .map((id) => ({
        ...{ kind: 'topic_gone', edit: 'audience' },
        words: fill(TEXTS.topicDeleted, { which: what, id }),
      }))
  return [...gone(topic_ids, 'selected'), ...gone(exclude_topic_ids, 'excluded')]
}

/** Returns the version to send, and all blockers except those of its audience. */
export async function findEmailBlockers(tx: Tx, row: BroadcastRow, publicUrl: string | null) {
  const { blockers, ...mail } = await versionToSend(tx, row, publicUrl)
  const all = [...(await domainBlockers(tx, row)), ...blockers, ...(await topicBlockers(tx, row))]
  return { ...mail, blockers: all }
}

/** Counts the audience, and returns its blockers. @param isCharged whether this period pays for it. */
export async function findAudienceBlockers(
  tx: Tx,
  row: BroadcastRow,
  isCharged: boolean,
): Promise<{ audience: number; blockers: Blocker[] }> {
  const audience = await audienceSize(tx, row)
  if (audience === 0) {
    const words = row.topic_ids.length === 0 ? TEXTS.noTopicChosen : TEXTS.noAudience
    return { audience, blockers: [{ kind: 'no_audience', words, edit: 'audience' }] }
  }
  const account = await readAccountRow(tx, row.team_id)
  const { limits, used } = toAccount(account ?? missing(row.team_id))
  const room = left(limits.emails, used.emails)
  if (!isCharged || audience <= room) return { audience, blockers: [] }
  const words = fill(TEXTS.audienceOverQuota, {
    audience,
    left: room,
    limit: limits.emails?.toLocaleString('en') ?? 'unlimited',
  })
  return { audience, blockers: [{ kind: 'quota_exceeded', words }] }
}

/** Returns the version to send, the size of the audience and all blockers. */
export async function findBlockers(
  tx: Tx,
  row: BroadcastRow,
  { publicUrl = null, isCharged = true }: { publicUrl?: string | null; isCharged?: boolean } = {},
) {
  const mail = await findEmailBlockers(tx, row, publicUrl)
  const { audience, blockers } = await findAudienceBlockers(tx, row, isCharged)
  return { ...mail, audience, blockers: [...mail.blockers, ...blockers] }
}

export const blocked = (
  { state }: BroadcastRow,
  blockers: readonly { words: string }[],
  what: 'sent' | 'tested' = 'sent',
): RequestError =>
  requestError('invalid_state', TEXTS.blocked, {
    broadcast: state === 'draft' ? 'draft' : `${state} broadcast`,
    what,
    reasons: blockers.map(({ words }) => words).join(' '),
  })

function missing(teamId: string): never {
  throw new Error(`team ${teamId} has no account`)
}
