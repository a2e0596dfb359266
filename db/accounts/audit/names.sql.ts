/**
 * What the things are called that entries of the audit trail name by their ids, as long as there are such things: a
 * page of entries at a time, by primary keys. Must not read what a message holds.
 */
import { sql } from 'slonik'
import { type InferType, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

const thing = row({ id: string(), kind: string(), name: string() })
/** @param kind the first part of an action that is about it. */
export type NamedThing = InferType<typeof thing>

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
  const rows = await tx.any(sql.type(thing)`
    with named as materialized (
      select distinct team_id, id from unnest(${teams}, ${ids}) as given (team_id, id))
    select id, 'template' as kind, t.name from named join templates t using (team_id, id)
    union all select id, 'topic', t.name from named join topics t using (team_id, id)
    union all select id, 'broadcast', b.name from named join broadcasts b using (team_id, id)
    union all select id, 'webhook', w.name from named join webhook_endpoints w using (team_id, id)`)
  return new Map(rows.map((each) => [each.id, each]))
}
