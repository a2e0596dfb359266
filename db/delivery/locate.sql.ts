/** The query that tells whose message an id names, of either channel: for people who hold an id and nothing else. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { spellingsOfId } from '../text/ids.ts'
import { isCustomers } from './channel.sql.ts'

const placeRow = object({
  team_id: string().defined(),
  channel: string().oneOf(['email', 'whatsapp']).defined(),
  id: string().defined(),
})
export type MessagePlace = InferType<typeof placeRow>

/**
 * The messages that have this id: our own, the provider's, a Message-ID, their request's, or their team's idempotency
 * key; at most `limit`. Each part is a look-up by an index, team by team. @param teams null: all of them,
 * and sign-in mails too.
 */
export async function messagesWithId(
  tx: Tx,
  id: string,
  { teams, limit }: { teams: readonly string[] | null; limit: number },
): Promise<readonly MessagePlace[]> {
  const { uuids, texts } = spellingsOfId(id)
  const own = sql.fragment`any(${sql.array(uuids, 'uuid')})`
  const any = sql.fragment`any(${sql.array(texts, 'text')})`
  const among = teams === null ? sql.fragment`true` : sql.fragment`t.id = any(${sql.array(teams, 'uuid')})`
  return tx.any(sql.type(placeRow)`
    select t.id as team_id, found.channel, found.id from teams t cross join lateral (
      select 'email' as channel, e.id from emails e
      where e.team_id = t.id and ${teams === null ? sql.fragment`true` : isCustomers}
        and (e.id = ${own} or e.idempotency_key = ${any} or e.provider_message_id = ${any}
          or e.http_request_id = ${any})
      union all
      select 'whatsapp', m.id from whatsapp_messages m
      where m.team_id = t.id and (m.id = ${own} or m.provider_message_id = ${any})
      union all
      select 'whatsapp', m.id from whatsapp_requests r
      join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
      where r.team_id = t.id and (r.idempotency_key = ${any} or r.http_request_id = ${any})) found
    where ${among} limit ${limit}`)
}
