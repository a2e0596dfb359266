/** What the simulator's channels share: their senders, and reports as a hook would store them. Names no channel. */
import { TEST_SENDERS } from '../../../db/channels/channels.sql.ts'
import { contentKey, type TakenReport } from '../../../db/delivery/reports/store.ts'

/** One piece of news of one message, as its report says it. */
export type News<E extends string> = { team_id: string; id: string; to: string; event: E; time: string }

export type Taken = { team_id: string; id: string; to: string; at: Date }

/** What a channel's messages share a pace under: nothing is gained by holding them back. */
export const senderOf = (channel: string) => ({
  key: `${TEST_SENDERS}${channel}`,
  ceiling: Number.POSITIVE_INFINITY,
  on_demand: true,
})

/** Reports of a message, a millisecond apart, so that timelines have them in their order. */
export const reportsOf = (
  channel: string,
  { at, ...message }: Taken,
  events: readonly string[],
): TakenReport[] =>
  events.map((event, index) => {
    const received_at = new Date(at.getTime() + index + 1)
    const news: News<string> = { ...message, event, time: received_at.toISOString() }
    const body = Buffer.from(JSON.stringify({ channel, ...news }))
    return { provider: 'test', event_key: contentKey(body), body, received_at }
  })
