/** Reads and changes rows and jobs of a team directly. */

import { sql } from 'slonik'
import { mixed, number, string } from 'yup'
import { credentialHash } from '../../db/accounts/credentials/token.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { countRow, idRow, row } from '../../db/postgres/rows.ts'
import { JOB_RETENTION_S } from '../../db/queue/jobs.ts'
import { ageEmailRows } from './email-rows.ts'
import type { Service } from './service.ts'

type Place = Pick<Service, 'database' | 'deps'>

/** Returns the team's usage, as `team show` prints it. */
export const usedBy = async ({ database }: Place, teamId: string) => (await showTeam(database, teamId)).used

/** Returns the team's jobs in any state. */
export const jobsOf = async ({ database }: Place, teamId: string) =>
  await database.any(sql.type(row({ name: string(), data: mixed<Record<string, unknown>>() }))`
    select name, data from pgboss.job where data ->> 'team_id' = ${teamId} order by created_on`)

/** Counts the team's emails and delivery jobs. */
export const rowCounts = async ({ database }: Place, teamId: string) =>
  await database.one(sql.type(row({ emails: number(), jobs: number() }))`
    select (select count(*) from emails where team_id = ${teamId}) as emails,
      (select count(*) from pgboss.job where name = 'deliver-email' and data ->> 'team_id' = ${teamId}) as jobs`)

/** Removes the team's domains. */
export const removeDomains = async ({ database }: Place, teamId: string): Promise<void> => {
  await database.query(sql.unsafe`delete from domains where team_id = ${teamId}`)
}

/** Returns the stored ID of a key. */
export const keyIdOf = ({ database }: Place, key: string): Promise<string> =>
  database.oneFirst(sql.type(idRow)`select id from api_keys where hash = ${sql.binary(credentialHash(key))}`)

/** Returns the size of the two email tables on disk, with indexes and TOAST, in bytes. */
export const tableSize = ({ database }: Place): Promise<number> =>
  database.oneFirst(sql.type(countRow)`
    select pg_total_relation_size('accepted_emails') + pg_total_relation_size('email_states') as count`)

/** Counts the statements that currently wait for a lock. @param pattern limits them to matching texts. */
export const lockWaits = ({ database }: Pick<Place, 'database'>, pattern = ''): Promise<number> =>
  database.oneFirst(sql.type(countRow)`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ~ ${pattern}`)

/** Returns the state of a row's delivery job, as a list of zero or one. */
export const jobStates = ({ database }: Place, id: string): Promise<readonly string[]> =>
  database.anyFirst(sql.type(row({ state: string() }))`select state::text from pgboss.job where id = ${id}`)

/** The number of seconds by which a job was deferred, at any time. Deferring sets both columns. */
export const putBackFor = sql.fragment`(extract(epoch from start_after - keep_until) + ${JOB_RETENTION_S})::float8`

/** Makes a waiting job due at once. @returns the number of seconds by which it was deferred. */
export const setJobsDue = ({ database }: Place, id: string): Promise<number> =>
  database.oneFirst(sql.type(row({ seconds: number() }))`
    with waiting as (select id, ${putBackFor} as seconds from pgboss.job where id = ${id} and state < 'active')
    update pgboss.job j set start_after = now() from waiting w where j.id = w.id
    returning w.seconds`)

/** Moves an email or a WhatsApp message, and its events, a day into the past. */
export const ageByADay = async ({ database }: Pick<Service, 'database'>, id: string): Promise<void> => {
  const day = sql.fragment`interval '24 hours 1 minute'`
  await ageEmailRows({ database }, sql.fragment`id = ${id}`, '24 hours 1 minute')
  await database.query(sql.unsafe`
    update email_events set occurred_at = occurred_at - ${day} where email_id = ${id}`)
  await database.query(sql.unsafe`
    update whatsapp_messages set created_at = created_at - ${day} where id = ${id}`)
  await database.query(sql.unsafe`
    update whatsapp_events set occurred_at = occurred_at - ${day} where message_id = ${id}`)
}

/** Counts the team's emails with the status sent. */
export const sentCount = ({ database }: Place, teamId: string): Promise<number> =>
  database.oneFirst(sql.type(countRow)`
    select count(*) as count from emails where team_id = ${teamId} and status = 'sent'`)

/** Deletes the team's template versions, which our code never does. */
export const loseVersions = async ({ database }: Pick<Place, 'database'>, teamId: string): Promise<void> => {
  await database.query(sql.unsafe`delete from template_versions where team_id = ${teamId}`)
}

/**
 * Runs a statement at the commit of every transaction that stores an email. @returns a function that ends
 * that.
 */
export const atCommit = async ({ database }: Place, statement: string): Promise<() => Promise<void>> => {
  const body = `begin ${statement}; return null; end`
  await database.query(sql.unsafe`
    create function at_commit() returns trigger language plpgsql as ${sql.literalValue(body)}`)
  await database.query(sql.unsafe`
    create constraint trigger at_commit after insert on accepted_emails deferrable initially deferred
    for each row execute function at_commit()`)
  return async () => {
    await database.query(sql.unsafe`drop function at_commit cascade`)
  }
}

const senderRow = row({
  key: string(),
  rate: number(),
  slowed_at: string().nullable(),
  paused_until: string().nullable(),
  pause_reason: string().nullable(),
})

/** Returns every stored sender. */
export const sendersOf = async ({ database }: Pick<Service, 'database'>) =>
  await database.any(sql.type(senderRow)`
    select key, rate, slowed_at, paused_until, pause_reason from senders order by key`)

/** Returns how many rows of a table the statements of some work have read. */
export const tuplesRead = async ({ database }: Place, table: string, work: (tx: Tx) => Promise<unknown>) =>
  database.transaction(async (tx) => {
    // The view also counts earlier reads of this connection that PostgreSQL hasn't published yet.
    const soFar = () =>
      tx.oneFirst(sql.type(row({ read: number() }))`
        select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables
        where relname = ${table}`)
    const before = await soFar()
    await work(tx)
    return (await soFar()) - before
  })
