/** Queries on topics, and on the contacts that have them. */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'
import { touchedAt } from './contacts.sql.ts'

const topicRow = row({ id: string(), name: string(), created_at: string() })
export type TopicRow = InferType<typeof topicRow>

/** Matches contacts with a topic. The partial index needs the second condition. */
export const hasTopic = (topic: string): FragmentSqlToken =>
  sql.fragment`topic_ids @> array[${topic}::uuid] and topic_ids <> '{}'`

/** Inserts a topic. @returns the row, or null if the team has a topic with this name. */
export const insertTopic = (tx: Tx, teamId: string, topic: { id: string; name: string }, now: Date) =>
  tx.maybeOne(sql.type(topicRow)`
    insert into topics (team_id, id, name, created_at)
    values (${teamId}, ${topic.id}, ${topic.name}, ${sql.timestamp(now)})
    on conflict (team_id, name) do nothing
    returning id, name, created_at`)

/** Renames a topic. @returns the topic, or null if it doesn't exist or another topic has the name. */
export const renameTopicRow = (tx: Tx, teamId: string, { id, name }: { id: string; name: string }) =>
  tx.maybeOne(sql.type(topicRow)`
    update topics t set name = ${name} where team_id = ${teamId} and id = ${id}
      and not exists (select from topics o where o.team_id = t.team_id and o.name = ${name} and o.id <> t.id)
    returning id, name, created_at`)

/** Returns a team's topics, oldest first. */
export const topicsOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(topicRow)`
    select id, name, created_at from topics where team_id = ${teamId} order by id`)

/** Returns the topics that the team has among these. They can't be deleted until the transaction ends. */
export async function holdTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  const held = await tx.anyFirst(sql.prepared('hold_topics', idRow)`
    select id from topics where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})
    order by id for key share`)
  return new Set(held)
}

type Subscribing = { contact_id: string; topic_id: string }

/**
 * Adds topics to contacts in one statement. Lock the topics first with `holdTopics`. A contact that was created after
 * `since` doesn't get topics that its recipient had left.
 */
export const addTopics = (
  tx: Tx,
  teamId: string,
  wanted: readonly Subscribing[],
  { now, since }: { now: Date; since: Date },
) =>
  tx.query(sql.type(object())`
    with item as (
      select contact_id, array_agg(distinct topic_id) as topics
      from ${rowsOf('given', { contact_id: 'uuid', topic_id: 'uuid' }, wanted)} group by contact_id
    ), held as (
      select c.id, array(
          select topic from unnest(item.topics) topic
          where topic <> all(c.topic_ids)
            and not (c.created_at >= ${sql.timestamp(since)} and topic = any(c.left_topic_ids))) as topics
      from item join contacts c on c.team_id = ${teamId} and c.id = item.contact_id
      where not c.topic_ids @> item.topics order by c.id for no key update of c
    )
    update contacts c set updated_at = ${touchedAt(now)}, topic_ids = c.topic_ids || held.topics
    from held where c.team_id = ${teamId} and c.id = held.id and held.topics <> '{}'`)

/** Waits for transactions that have a shared lock on the topic, then locks it until the transaction ends. */
export const lockTopic = (tx: Tx, teamId: string, id: string) =>
  tx.query(sql.unsafe`select from topics where team_id = ${teamId} and id = ${id} for update`)

const userRow = row({ name: string(), state: string() })

/** Returns the unfinished broadcasts that include or exclude a topic. */
export const broadcastsNaming = (tx: Tx, teamId: string, id: string) =>
  tx.any(sql.type(userRow)`
    select name, state from broadcasts
    where team_id = ${teamId} and state in ('draft', 'scheduled', 'sending', 'paused')
      and ${id}::uuid = any(topic_ids || exclude_topic_ids)
    order by id desc`)

/**
 * Deletes a topic and removes it from all contacts, in one statement, in ID order. Doesn't filter contacts by team,
 * because the planner would also read all keys of the team.
 * @returns the topic, or null if it doesn't exist.
 */
export const deleteTopic = (tx: Tx, teamId: string, id: string, now: Date) =>
  tx.maybeOne(sql.type(topicRow)`
    with gone as (
      delete from topics where team_id = ${teamId} and id = ${id} returning id, name, created_at
    ), held as (
      select id from contacts where ${hasTopic(id)} and exists (select from gone)
      order by id for no key update
    ), unsubscribed as (
      update contacts c set topic_ids = array_remove(topic_ids, ${id}), updated_at = ${touchedAt(now)}
      from held where c.team_id = ${teamId} and c.id = held.id
    )
    select id, name, created_at from gone`)
