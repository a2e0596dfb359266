/** Compares the audience of a draft or scheduled broadcast with the subscribers of its topic. */
import { countSubscribers } from '../../../db/audience/contacts/topic-counts.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { number } from '../components/cell.ts'
import { compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'

/** Counts the subscribers of the topic. Null if the audience has several topics, excluded ones or conditions. */
export async function loadSubscribers(
  { team_id, topic_ids, exclude_topic_ids, conditions }: BroadcastRow,
  { database }: PageDeps,
): Promise<number | null> {
  const [topic, ...others] = topic_ids
  if (topic === undefined || others.length + exclude_topic_ids.length + conditions.length > 0) return null
  return (await countSubscribers(database, team_id, [topic])).get(topic) ?? null
}

/** Describes the size of the audience, with the subscribers it leaves out. */
export function describeReach(
  { audience }: { audience: number | null },
  subscribers: number | null,
  isScheduled: boolean,
): string | undefined {
  const left = audience === null || subscribers === null ? 0 : subscribers - audience
  const all = `of ${number(subscribers).text} in the topic. ${number(left).text} ${left === 1 ? 'is' : 'are'} unsubscribed or suppressed`
  const parts = compact([
    isScheduled ? (left > 0 ? `match now, ${all}` : 'match now') : left > 0 && all,
    isScheduled && 'The audience is chosen when it starts',
  ])
  return parts.length === 0 ? undefined : `${parts.join('. ')}.`
}
