/**
 * What teams have and call by a name, over the tables of all kinds: by ids, such as those of the audit trail, and by
 * words. Promises: a page of ids is read by primary keys; words by the rows of one team. Must not read what a message
 * or a contact holds.
 */
import { sql } from 'slonik'
import { type InferType, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { likePattern } from '../../text/strings.ts'

const thing = row({ id: string(), kind: string(), name: string() })
/** @param kind the first part of an action that is about it. */
export type NamedThing = InferType<typeof thing>

/** Each kind with its table. */
const KINDS = [
  ['broadcast', 'broadcasts'],
  ['template', 'templates'],
  ['whatsapp-template', 'whatsapp_templates'],
  ['topic', 'topics'],
  ['domain', 'domains'],
  ['webhook', 'webhook_endpoints'],
] as const

/** The things with these ids, as long as there are such things. */
export async function namesOfThings(
  tx: Tx,
  things: readonly { team_id: string; id: string }[],
): Promise<ReadonlyMap<string, NamedThing>> {
  if (things.length === 0) return new Map()
  const teams = sql.array(
    things.map(({ team_id }) => team_id),
    'uuid',
  )
  const ids = sql.array(
    things.map(({ id }) => id),
    'uuid',
  )
  const named = KINDS.map(
    ([kind, table]) => sql.fragment`
      select id, ${kind}::text as kind, t.name from named join ${sql.identifier([table])} t using (team_id, id)`,
  )
  const rows = await tx.any(sql.type(thing)`
    with named as materialized (
      select distinct team_id, id from unnest(${teams}, ${ids}) as given (team_id, id))
    ${sql.join(named, sql.fragment` union all `)}`)
  return new Map(rows.map((each) => [each.id, each]))
}

/** A team's things with all of these words in their names, whatever the case; of each kind the newest. */
export async function thingsNamed(
  tx: Tx,
  teamId: string,
  words: readonly string[],
  limit: number,
): Promise<readonly NamedThing[]> {
  const patterns = sql.array(words.map(likePattern), 'text')
  const named = KINDS.map(
    ([kind, table]) => sql.fragment`
      (select id, ${kind}::text as kind, name from ${sql.identifier([table])}
      where team_id = ${teamId} and name ilike all (${patterns}) order by id desc limit ${limit})`,
  )
  return tx.any(sql.type(thing)`${sql.join(named, sql.fragment` union all `)}`)
}
