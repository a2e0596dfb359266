/** Rows of the audit trail, and the queries over them. They are only ever added. */
import { sql } from 'slonik'
import { type InferType, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'

const entryRow = row({
  id: string(),
  team_id: string().nullable(),
  actor: string(),
  action: string(),
  subject: string(),
  detail: string(),
  created_at: string(),
})
export type AuditRow = InferType<typeof entryRow>

export const insertAuditEntry = (tx: Tx, entry: Omit<AuditRow, 'created_at'>, now: Date) =>
  tx.query(sql.unsafe`
    insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
    values (${entry.id}, ${entry.team_id}, ${entry.actor}, ${entry.action}, ${entry.subject}, ${entry.detail},
      ${sql.timestamp(now)})`)

const broadcastEntryRow = row({ actor: string(), action: string(), created_at: string() })
/** What a person did with one thing. */
export type BroadcastEntryRow = InferType<typeof broadcastEntryRow>

/** What was done with one broadcast, newest first. @param actions whole ones, such as `broadcast.pause`. */
export const entriesOfBroadcast = (
  tx: Tx,
  { team_id, id }: { team_id: string; id: string },
  actions: readonly string[],
  limit: number,
) =>
  tx.any(sql.type(broadcastEntryRow)`
    select actor, action, created_at from audit_entries
    where team_id = ${team_id} and detail = ${id} and split_part(action, '.', 1) = 'broadcast'
      and action = any(${sql.array(actions, 'text')})
    order by id desc limit ${limit}`)

/** @param actor a whole address. @param action a whole action, or its first part, such as `email`. */
type AuditFilter = {
  team?: string | undefined
  teams?: readonly string[] | undefined
  actor?: string | undefined
  action?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
  before?: string | undefined
  limit: number
}

/** What was done, newest first; with `before`, what comes after that entry. */
export async function auditEntries(
  tx: Tx,
  { team, teams, actor, action, from, to, before, limit }: AuditFilter,
) {
  const part = action?.includes('.') ? sql.fragment`action` : sql.fragment`split_part(action, '.', 1)`
  const fits = allOf(
    team !== undefined && sql.fragment`team_id = ${team}`,
    teams && sql.fragment`team_id = any(${sql.array(teams, 'uuid')})`,
    before !== undefined && sql.fragment`id < ${before}`,
    actor !== undefined && sql.fragment`lower(actor) = lower(${actor})`,
    action !== undefined && sql.fragment`${part} = ${action}`,
    from && sql.fragment`id >= ${firstIdAt(from)}`,
    to && sql.fragment`id < ${firstIdAt(to)}`,
  )
  return tx.any(sql.type(entryRow)`
    select id, team_id, actor, action, subject, detail, created_at from audit_entries
    where ${fits} order by id desc limit ${limit}`)
}
