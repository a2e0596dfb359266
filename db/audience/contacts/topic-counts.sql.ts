/** The number of contacts per topic, as sums of deltas in topic_counts, which triggers add. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

const topicCountRow = row({ topic_id: string(), count: number() })

/** Returns how many of a team's contacts have each topic. Topics without contacts can be absent. */
export async function countSubscribers(tx: Tx, teamId: string, topics: readonly string[]) {
  const rows = await tx.any(sql.type(topicCountRow)`
    select topic_id, sum(count)::bigint as count from topic_counts
    where team_id = ${teamId} and topic_id = any(${sql.array(topics, 'uuid')}) group by topic_id`)
  return new Map(rows.map(({ topic_id, count }) => [topic_id, count]))
}

/** Merges the deltas of up to `limit` changed topics into one row each. @returns the number of topics. */
export const foldTopicCounts = (tx: Tx, limit: number) =>
  tx.oneFirst(sql.type(row({ folded: number() }))`
    with moved as (
      select distinct team_id, topic_id from topic_counts where not folded limit ${limit}
    ), taken as (
      delete from topic_counts c using moved m where c.team_id = m.team_id and c.topic_id = m.topic_id
      returning c.team_id, c.topic_id, c.count
    ), added as (
      insert into topic_counts (team_id, topic_id, count, folded)
      select team_id, topic_id, sum(count), true from taken group by team_id, topic_id having sum(count) <> 0
    )
    select count(*) as folded from moved`)
