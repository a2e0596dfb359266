/**
 * Turns just-in-time compilation off for our role in our database. Compiling any of our statements is slower than
 * running it, and the planner decides by estimated cost.
 */

import type { Client } from 'pg'
import { errorWords } from '../errors.ts'

/** Any number that no other program uses as an advisory lock on this database. */
const LOCK = 7_041_989

/**
 * `pg_jit_available` is false if the server has no compiler, or `jit` is off. An existing setting of this role in
 * this database doesn't change.
 */
const NEEDED = `
  select format('alter role %I in database %I set jit = off', session_user, current_database()) as statement
  where pg_jit_available() and not exists (
    select from pg_db_role_setting s
      join pg_database d on d.oid = s.setdatabase join pg_roles r on r.oid = s.setrole
    where d.datname = current_database() and r.rolname = session_user
      and exists (select from unnest(s.setconfig) c where c like 'jit=%'))`

/** A change of the role's setting that was made, or could not be made, and why. */
type JitChange = { statement: string; reason: string | null }

/** Turns JIT off for new sessions. Open sessions keep it. @returns the change, or null if it wasn't necessary. */
export async function turnOffJit(client: Client): Promise<JitChange | null> {
  const { rows } = await client.query<{ statement: string }>(NEEDED)
  const statement = rows[0]?.statement
  if (statement === undefined) return null
  try {
    await client.query('begin')
    // If two processes changed the same setting at once, one would fail.
    await client.query('select pg_advisory_xact_lock($1)', [LOCK])
    const { rowCount } = await client.query(NEEDED)
    if (rowCount) await client.query(statement)
    await client.query('commit')
    return rowCount ? { statement, reason: null } : null
  } catch (error) {
    await client.query('rollback')
    return { statement, reason: errorWords(error) }
  }
}
