/** Queries for messages sent to phone numbers, on every channel. */
import { sql } from 'slonik'
import { type InferType, number, string } from 'yup'
import type { Channel } from '../channels/channel.sql.ts'
import { CHANNELS } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'

const sentRow = row({
  id: string(),
  recipient: string(),
  template_id: string().nullable(),
  status: string(),
  created_at: string(),
})
type SentToNumber = InferType<typeof sentRow>

export type SentBy = { channel: Channel; sent: readonly SentToNumber[] }

/** Returns a team's latest messages to numbers in E.164 form, at most `limit` per channel. */
export async function sentToNumbers(tx: Tx, team: string, numbers: readonly string[], limit: number) {
  const found: SentBy[] = []
  for (const channel of CHANNELS) {
    if (!channel.to_numbers) continue
    const query = channel.to_numbers({ team, numbers, limit })
    const sent = numbers.length === 0 ? [] : await tx.any(sql.type(sentRow)`${query}`)
    found.push({ channel, sent })
  }
  return found
}

const countRow = row({ team_id: string(), count: number() })

/** Counts the messages that each team sent to a number, at most `limit` per channel. */
export async function teamsSentTo(tx: Tx, to: string, limit: number) {
  const found: (InferType<typeof countRow> & { channel: Channel })[] = []
  for (const channel of CHANNELS) {
    if (!channel.to_numbers) continue
    const query = channel.to_numbers({ team: sql.fragment`t.id`, numbers: [to], limit })
    const counts = await tx.any(sql.type(countRow)`
      select t.id as team_id, count(*) as count from teams t cross join lateral (${query}) sent group by t.id`)
    found.push(...counts.map((count) => ({ ...count, channel })))
  }
  return found
}
