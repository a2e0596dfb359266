/** The query that finds whose message an id names, of any channel: for people who hold an id and nothing else. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import { CHANNELS } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { spellingsOfId } from '../text/ids.ts'

const placeRow = object({
  team_id: string().defined(),
  channel: string()
    .oneOf(CHANNELS.map(({ name }) => name))
    .defined(),
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
  const found = CHANNELS.map(
    ({ name, rows, customers, named }) => sql.fragment`
      select ${name}::text as channel, id from ${rows} m
      where team_id = t.id and id in (${named({ team: sql.fragment`t.id`, uuids, texts })})
        and ${teams === null ? sql.fragment`true` : customers}`,
  )
  const among = teams === null ? sql.fragment`true` : sql.fragment`t.id = any(${sql.array(teams, 'uuid')})`
  return tx.any(sql.type(placeRow)`
    select t.id as team_id, found.channel, found.id
    from teams t cross join lateral (${sql.join(found, sql.fragment` union all `)}) found
    where ${among} limit ${limit}`)
}
