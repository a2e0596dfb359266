/** Rows of topics, and the queries over them and the contacts that have them. */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'
import { touchedAt } from './contacts.sql.ts'

const topicRow = row({ id: string(), name: string(), created_at: string() })
export type TopicRow = InferType<typeof topicRow>

/** Whether a contact has a topic. The second part is what the index on topics has; without it that is not used. */
export const hasTopic = (topic: string): FragmentSqlToken =>
  sql.fragment`topic_ids @> array[${topic}::uuid] and topic_ids <> '{}'`

/** Stores a topic. @returns the row, or null when the team has one of this name. */
export const insertTopic = (tx: Tx, teamId: string, topic: { id: string; name: string }, now: Date) =>
  tx.maybeOne(sql.type(topicRow)`
    insert into topics (team_id, id, name, created_at)
    values (${teamId}, ${topic.id}, ${topic.name}, ${sql.timestamp(now)})
    on conflict (team_id, name) do nothing
    returning id, name, created_at`)

/** Gives a topic another name. @returns the topic, or null when there is none, or another has the name. */
export const renameTopicRow = (tx: Tx, teamId: string, { id, name }: { id: string; name: string }) =>
  tx.maybeOne(sql.type(topicRow)`
    update topics t set name = ${name} where team_id = ${teamId} and id = ${id}
      and not exists (select from topics o where o.team_id = t.team_id and o.name = ${name} and o.id <> t.id)
    returning id, name, created_at`)

/** A team's topics, oldest first. */
export const topicsOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(topicRow)`
    select id, name, created_at from topics where team_id = ${teamId} order by id`)

/** Of these topics those that the team has; they stay until the transaction ends. */
export async function holdTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  const held = await tx.anyFirst(sql.prepared('hold_topics', idRow)`
    select id from topics where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')})
    order by id for key share`)
  return new Set(held)
}

type Subscribing = { contact_id: string; topic_id: string }

/**
 * Gives contacts topics besides their own, in one statement. Hold the topics before. A contact that was made since then
 * does not get what its person had left: somebody who was erased begins without it, however often it is given.
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

/** Waits for those that hold the topic; afterwards nobody can, until the transaction ends. */
export const lockTopic = (tx: Tx, teamId: string, id: string) =>
  tx.query(sql.unsafe`select from topics where team_id = ${teamId} and id = ${id} for update`)

const userRow = row({ name: string(), state: string() })

/** The broadcasts that name a topic, to go to it or not to, and that have not ended. */
export const broadcastsNaming = (tx: Tx, teamId: string, id: string) =>
  tx.any(sql.type(userRow)`
    select name, state from broadcasts
    where team_id = ${teamId} and state in ('draft', 'scheduled', 'sending', 'paused')
      and ${id}::uuid = any(topic_ids || exclude_topic_ids)
    order by id desc`)

/**
 * Deletes a topic and takes it off every contact, in one statement; contacts are locked in the order that everybody
 * keeps. A topic is one team's: with the team beside it, the planner would read all of the team's keys too.
 * @returns the topic, or null without one.
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
