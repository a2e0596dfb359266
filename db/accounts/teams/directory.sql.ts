/** Queries for the operator's list of teams. */
import { sql } from 'slonik'
import { string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { accountColumns, accountRow, accountTables, teamRow } from './teams.sql.ts'

/** Returns a page of teams whose names contain `name`, newest first, after the team `before`. */
export async function teamsAfter(
  tx: Tx,
  { name = '', before, limit }: { name?: string | undefined; before?: string | undefined; limit: number },
) {
  const older = allOf(before !== undefined && sql.fragment`t.id < ${before}`)
  return tx.any(sql.type(teamRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
    from teams t join subscriptions s on s.team_id = t.id
    where strpos(lower(t.name), lower(${name})) > 0 and ${older}
    order by t.id desc limit ${limit}`)
}

const listedRow = teamRow.concat(row({ bulk_paused_at: string().nullable() }))

export async function teamsOfIds(tx: Tx, ids: readonly string[]) {
  const rows = await tx.any(sql.type(listedRow)`
    select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at, t.bulk_paused_at
    from teams t join subscriptions s on s.team_id = t.id where t.id = any(${sql.array(ids, 'uuid')})`)
  const byId = new Map(rows.map((each) => [each.id, each]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Reads accounts without locking them. */
export async function readAccountRows(tx: Tx, teamIds: readonly string[]) {
  const rows = await tx.any(sql.type(accountRow)`
    select ${accountColumns} from ${accountTables}
    where a.team_id = any(${sql.array(teamIds, 'uuid')})`)
  return new Map(rows.map((row) => [row.team_id, row]))
}

const nameRow = row({ id: string(), name: string() })

export async function namesOfTeams(tx: Tx, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.any(sql.type(nameRow)`
    select id, name from teams where id = any(${sql.array(ids, 'uuid')})`)
  return new Map(rows.map(({ id, name }) => [id, name]))
}
