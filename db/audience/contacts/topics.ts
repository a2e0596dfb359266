/**
 * The topics of a team. A deleted topic is removed from all contacts. It can't be deleted while an unfinished
 * broadcast uses it.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { lockAccount } from '../../accounts/teams/limits.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { invalidField, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { checkName } from '../../validation/name.ts'
import { TEXTS } from '../texts.ts'
import {
  broadcastsNaming,
  deleteTopic,
  insertTopic,
  lockTopic,
  renameTopicRow,
  type TopicRow,
  topicsOfTeam,
} from './topics.sql.ts'

/** @throws RequestError not_found for the team, bad_request if the name is invalid or in use. */
export async function createTopic(by: By, teamId: string, { name }: { name: string }): Promise<TopicRow> {
  const { tx, now } = by
  checkName(name)
  await requireTeam(tx, teamId)
  const topic = await insertTopic(tx, teamId, { id: idNow(), name }, now)
  if (!topic) throw invalidField('name', TEXTS.topicExists, { name: JSON.stringify(name) })
  await record(by, { team_id: teamId, action: 'topic.create', subject: name, detail: topic.id })
  return topic
}

/** @throws RequestError bad_request if the name is invalid or in use, not_found. */
export async function renameTopic(by: By, teamId: string, { id, name }: { id: string; name: string }) {
  checkName(name)
  const topic = await renameTopicRow(by.tx, teamId, { id, name })
  if (!topic) throw await renameError(by.tx, teamId, { id, name })
  await record(by, { team_id: teamId, action: 'topic.rename', subject: id, detail: name })
  return topic
}

async function renameError(tx: Tx, teamId: string, { id, name }: { id: string; name: string }) {
  const isKnown = (await topicsOfTeam(tx, teamId)).some((topic) => topic.id === id)
  return isKnown
    ? invalidField('name', TEXTS.topicExists, { name: JSON.stringify(name) })
    : requestError('not_found', TEXTS.noTopic, { id })
}

const MAX_NAMED = 5

/** Without an excluded topic, a broadcast would also go to its contacts. @throws RequestError invalid_state. */
async function assertUnused(tx: Tx, teamId: string, id: string): Promise<void> {
  const users = await broadcastsNaming(tx, teamId, id)
  if (users.length === 0) return
  const names = users.slice(0, MAX_NAMED).map(({ name, state }) => `${JSON.stringify(name)} (${state})`)
  const more = users.length > MAX_NAMED ? ` and ${users.length - MAX_NAMED} more` : ''
  const broadcasts = `${users.length === 1 ? 'the broadcast' : 'the broadcasts'} ${names.join(', ')}${more}`
  throw requestError('invalid_state', TEXTS.topicInUse, { broadcasts })
}

/** @throws RequestError not_found, or invalid_state while an unfinished broadcast uses the topic. */
export async function removeTopic(by: By, teamId: string, id: string): Promise<TopicRow> {
  const { tx, now } = by
  await requireTeam(tx, teamId)
  // The account's lock excludes bulk upserts, which also lock many contacts, and broadcasts that are
  // starting. The topic's lock waits for calls that are adding it to a contact or a draft, so the next
  // statements see these.
  await lockAccount(tx, teamId)
  await lockTopic(tx, teamId, id)
  await assertUnused(tx, teamId, id)
  const topic = await deleteTopic(tx, teamId, id, now)
  if (!topic) throw requestError('not_found', TEXTS.noTopic, { id })
  await record(by, { team_id: teamId, action: 'topic.delete', subject: id, detail: topic.name })
  return topic
}
