/** Finds the messages with an ID, on any channel. */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, string } from 'yup'
import type { Channel } from '../channels/channel.sql.ts'
import { CHANNELS } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import { spellingsOfId } from '../validation/ids.ts'

const placeRow = row({
  team_id: string(),
  channel: string().oneOf(CHANNELS.map(({ name }) => name)),
  id: string(),
})
export type MessagePlace = InferType<typeof placeRow>

type Wanted = { teams: readonly string[] | null; limit: number }

const inEach = (query: (channel: Channel) => FragmentSqlToken) =>
  sql.join(CHANNELS.map(query), sql.fragment` union all `)

/** Searches team by team. Each part uses an index. */
async function messagesOfTeams(tx: Tx, id: string, teams: readonly string[], limit: number) {
  const spelt = { team: sql.fragment`t.id`, ...spellingsOfId(id) }
  const found = inEach(
    ({ name, rows, customers, findInTeam }) => sql.fragment`
      select ${name}::text as channel, id from ${rows} m
      where team_id = t.id and id in (${findInTeam(spelt)}) and ${customers}`,
  )
  return tx.any(sql.type(placeRow)`
    select t.id as team_id, found.channel, found.id
    from teams t cross join lateral (${found}) found
    where t.id = any(${sql.array(teams, 'uuid')}) limit ${limit}`)
}

/** Searches all teams. Each part uses an index. */
async function messagesAnywhere(tx: Tx, id: string, limit: number) {
  const found = inEach(
    ({ name, findAnywhere }) => sql.fragment`
      select team_id, ${name}::text as channel, id from (${findAnywhere(spellingsOfId(id))}) one`,
  )
  return tx.any(sql.type(placeRow)`${found} limit ${limit}`)
}

/**
 * Returns messages with this ID, at most `limit`: our own ID, the provider's, a Message-ID, a request's ID or an
 * idempotency key.
 * @param teams null: all teams, and internal email.
 */
export const messagesWithId = (tx: Tx, id: string, { teams, limit }: Wanted) =>
  teams === null ? messagesAnywhere(tx, id, limit) : messagesOfTeams(tx, id, teams, limit)
