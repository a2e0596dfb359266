/** Rows of topics, and the queries over them. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../pool.ts'

const topicRow = object({
  id: string().defined(),
  name: string().defined(),
  created_at: string().defined(),
})
export type TopicRow = InferType<typeof topicRow>

/** Stores a topic. @returns the row, or null when the team has one of this name. */
export async function insertTopic(
  tx: Tx,
  teamId: string,
  topic: { id: string; name: string },
  now: Date,
): Promise<TopicRow | null> {
  return await tx.maybeOne(sql.type(topicRow)`
    insert into topics (team_id, id, name, created_at)
    values (${teamId}, ${topic.id}, ${topic.name}, ${sql.timestamp(now)})
    on conflict (team_id, name) do nothing
    returning id, name, created_at`)
}

/** A team's topics, oldest first. */
export async function topicsOfTeam(tx: Tx, teamId: string): Promise<readonly TopicRow[]> {
  return await tx.any(sql.type(topicRow)`
    select id, name, created_at from topics where team_id = ${teamId} order by id`)
}

/** Deletes a topic and takes it off every contact, in one statement. @returns the topic, or null without one. */
export async function deleteTopic(tx: Tx, teamId: string, id: string, now: Date): Promise<TopicRow | null> {
  return await tx.maybeOne(sql.type(topicRow)`
    with gone as (
      delete from topics where team_id = ${teamId} and id = ${id} returning id, name, created_at
    ), unsubscribed as (
      update contacts set topic_ids = array_remove(topic_ids, gone.id), updated_at = ${sql.timestamp(now)}
      from gone where contacts.team_id = ${teamId} and gone.id = any(contacts.topic_ids)
    )
    select id, name, created_at from gone`)
}
