/**
 * Searches a team's named objects of all kinds: by IDs, such as those in the audit log, and by terms. Reads no
 * message or contact content.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, string } from 'yup'
import { CHANNELS } from '../../channels/channels.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { isUuid, likePattern } from '../../validation/strings.ts'

const thing = row({ id: string(), kind: string(), name: string() })
const found = thing.concat(row({ team_id: string(), word: string() }))
/** @param kind the first part of an action that is about it. */
export type NamedThing = InferType<typeof thing>

type Kind = { kind: string; table: FragmentSqlToken; name: FragmentSqlToken }

const kindOf = (kind: string, table: FragmentSqlToken, name = sql.fragment`name`): Kind => ({
  kind,
  table,
  name,
})

const KINDS = [
  kindOf('broadcast', sql.fragment`broadcasts`),
  kindOf('template', sql.fragment`templates`),
  ...CHANNELS.flatMap(({ name, templates }) => (templates ? [kindOf(`${name}-template`, templates)] : [])),
  kindOf('topic', sql.fragment`topics`),
  kindOf('domain', sql.fragment`domains`),
  kindOf('webhook', sql.fragment`webhook_endpoints`),
]
const MESSAGES = CHANNELS.map(({ name, rows }) => kindOf(name, rows, sql.fragment`id`))

/** The key of an object that a team's term identifies. */
export const thingKey = (teamId: string, word: string): string => `${teamId} ${word}`

/**
 * Returns the names of the objects that these terms identify, by `thingKey`. A term is an ID, a domain name or the
 * identity of a contact.
 */
export async function namesOfThings(tx: Tx, things: readonly { team_id: string; word: string }[]) {
  const ids = things.filter(({ word }) => isUuid(word))
  const words = things.filter(({ word }) => !isUuid(word))
  const given = sql.fragment`
    with ids as materialized (
      select distinct team_id, word as id from ${rowsOf('given', { team_id: 'uuid', word: 'uuid' }, ids)}),
    words as materialized (
      select distinct team_id, word from ${rowsOf('given', { team_id: 'uuid', word: 'text' }, words)})`
  const byId = [...KINDS, ...MESSAGES].map(
    ({ kind, table, name }) => sql.fragment`
      select team_id, id::text as word, id::text as id, ${kind}::text as kind, ${name}::text as name
      from ids join ${table} using (team_id, id)`,
  )
  const rows = await tx.any(sql.type(found)`${given}
    ${sql.join(byId, sql.fragment` union all `)}
    union all select d.team_id, word, d.id::text, 'domain', d.name from words join domains d on
      d.team_id = words.team_id and d.name = word
    union all select c.team_id, word, c.id::text, 'contact', c.email from words join contacts c on
      c.team_id = words.team_id and c.identity = word`)
  return new Map(rows.map(({ team_id, word, ...each }) => [thingKey(team_id, word), each]))
}

/** Returns a team's objects with all of these terms in their names, in any case, the newest of each kind. */
export async function thingsNamed(tx: Tx, teamId: string, words: readonly string[], limit: number) {
  const patterns = sql.array(words.map(likePattern), 'text')
  const named = KINDS.map(
    ({ kind, table }) => sql.fragment`
      (select id, ${kind}::text as kind, name from ${table}
      where team_id = ${teamId} and name ilike all (${patterns}) order by id desc limit ${limit})`,
  )
  return tx.any(sql.type(thing)`${sql.join(named, sql.fragment` union all `)}`)
}
