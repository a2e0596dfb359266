/** Starts the server of the growth tests, with two hundred teams. The first is large. The tests add the rows. */
import { sql } from 'slonik'
import { boolean, object } from 'yup'
import type { Tx } from '../../db/postgres/pool.ts'
import { ownServer } from './own-server.ts'
import { openPool } from './pool.ts'
import type { Test } from './tap.ts'
import { readsFewer } from './touched.ts'

/** The large team. */
export const TEAM = '0190a1b2-0000-7000-8000-000000000001'
/** The template of one in forty emails of the large team. */
export const TEMPLATE = '0190a1b2-0002-7000-8000-000000000001'
export const uuid = (kind: string, n: number): string =>
  `0190a1b2-${kind}-7000-8000-${String(n).padStart(12, '0')}`

export async function startLargeTables(t: Test) {
  const { url } = await ownServer(t)
  const database = await openPool(t, url, { size: 3, statementTimeout: 60_000 })
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at)
    select ('0190a1b2-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Team ' || n, now() - interval '90 days'
    from generate_series(1, 200) n`)
  /** Before PostgreSQL 17, an index is searched once per value of a list. */
  const descendsByValue = await database.oneFirst(sql.type(object({ is: boolean().defined() }))`
    select current_setting('server_version_num')::int < 170000 as is`)
  const reads = <Result>(t: Test, most: number, work: (tx: Tx) => Promise<Result>, of?: string) =>
    readsFewer(t, database, most, work, of)
  return { database, reads, descendsByValue }
}
