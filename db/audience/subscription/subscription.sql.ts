/** Queries on the topics of one contact: current ones and those it has left. */
import { sql } from 'slonik'
import { array, boolean, type InferType, string } from 'yup'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { touchedAt } from '../contacts/contacts.sql.ts'

const ids = () => array(string())

const contactTopicsRow = row({
  id: string(),
  topic_ids: ids(),
  /** Topics that the recipient left. The team may have added the contact to them again. */
  left_topic_ids: ids(),
})
export type ContactTopics = InferType<typeof contactTopicsRow>

/** Returns the topics of a contact, or null if it doesn't exist. @param hold locks it. */
export const topicsOfContact = (tx: Tx, teamId: string, identity: string, hold: 'hold' | 'look') =>
  tx.maybeOne(sql.type(contactTopicsRow)`
    select id, topic_ids, left_topic_ids from contacts where team_id = ${teamId} and identity = ${identity}
    ${hold === 'hold' ? sql.fragment`for no key update` : sql.fragment``}`)

const writtenRow = row({ has_listeners: boolean() })

/** @returns true if its team has listeners. */
export const writeTopics = (
  tx: Tx,
  teamId: string,
  { id, topic_ids, left_topic_ids }: ContactTopics,
  now: Date,
) =>
  tx.oneFirst(sql.prepared('write_topics_of_contact', writtenRow)`
    update contacts set topic_ids = ${sql.array(topic_ids, 'uuid')},
      left_topic_ids = ${sql.array(left_topic_ids, 'uuid')}, updated_at = ${touchedAt(now)}
    where team_id = ${teamId} and id = ${id}
    returning ${hasListeners(sql.fragment`contacts.team_id`)} as has_listeners`)

/** Makes a suppressed contact `unsubscribed` when its suppression ends. @returns false if it isn't suppressed. */
export const leaveWhileSuppressed = async (tx: Tx, teamId: string, identity: string): Promise<boolean> => {
  const found = await tx.anyFirst(sql.type(idRow)`
    update contacts set status_before = 'unsubscribed'
    where team_id = ${teamId} and identity = ${identity} and status in ('bounced', 'complained')
    returning id`)
  return found.length > 0
}
