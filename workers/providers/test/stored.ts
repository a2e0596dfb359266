/** The senders of the simulator's channels, and its reports in the form of a hook's stored reports. */
import { TEST_SENDERS } from '../../../db/channels/channels.sql.ts'
import { contentKey, type TakenReport } from '../../../db/delivery/reports/store.ts'

/** One event of one message, as its report has it. */
export type News<E extends string> = { team_id: string; id: string; to: string; event: E; time: string }

export type Taken = { team_id: string; id: string; to: string; at: Date }

/** Returns the sender of a channel's messages. Delaying them would be useless. */
export const senderOf = (channel: string) => ({
  key: `${TEST_SENDERS}${channel}`,
  ceiling: Number.POSITIVE_INFINITY,
  on_demand: true,
})

/** Returns a message's reports, a millisecond apart, so that timelines keep their order. */
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
