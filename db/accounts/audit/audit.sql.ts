/** Rows of the audit log, which never change. */
import { sql } from 'slonik'
import { type InferType, string } from 'yup'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'
import { type Searched, type SearchPart, searchParts } from '../../postgres/search-parts.ts'
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
export type BroadcastEntryRow = InferType<typeof broadcastEntryRow>

/** Lists the actions on one broadcast, newest first. @param actions full names, such as `broadcast.pause`. */
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

const creatorRow = row({ prefix: string(), actor: string() })
const KEY = { prefix: 'text', first: 'uuid', next: 'uuid' }

/**
 * Returns the creators of keys by the prefix of the key. An entry has the time of its key in its ID, so that no other
 * entries are read.
 */
export async function keyCreators(
  tx: Tx,
  teamId: string,
  keys: readonly { prefix: string; created_at: string }[],
): Promise<ReadonlyMap<string, string>> {
  const given = keys.map(({ prefix, created_at }) => {
    const at = Date.parse(created_at)
    return { prefix, first: firstIdAt(new Date(at)), next: firstIdAt(new Date(at + 1)) }
  })
  const rows = await tx.any(sql.type(creatorRow)`
    select k.prefix, e.actor from ${rowsOf('k', KEY, given)} cross join lateral (
      select actor from audit_entries
      where team_id = ${teamId} and id >= k.first and id < k.next and action in ('key.create', 'key.rotate')
        and split_part(detail, ':', 1) = k.prefix
      order by id limit 1) e`)
  return new Map(rows.map(({ prefix, actor }) => [prefix, actor]))
}

const additionRow = row({ subject: string(), created_at: string() })

/**
 * Returns when each address was last added to a team. A changed role has the same action and another detail.
 * @param roles all roles.
 */
export async function memberAdditions(
  tx: Tx,
  teamId: string,
  roles: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await tx.any(sql.type(additionRow)`
    select subject, max(created_at) as created_at from audit_entries
    where team_id = ${teamId} and action = 'member.add' and detail = any(${sql.array(roles, 'text')})
    group by subject`)
  return new Map(rows.map(({ subject, created_at }) => [subject, created_at]))
}

/** @param actor a full address. @param action a full action, or its first part, such as `email`. */
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

function matching({ team, teams, actor, action, from, to, before }: AuditFilter) {
  const part = action?.includes('.') ? sql.fragment`action` : sql.fragment`split_part(action, '.', 1)`
  return allOf(
    team !== undefined && sql.fragment`team_id = ${team}`,
    teams && sql.fragment`team_id = any(${sql.array(teams, 'uuid')})`,
    before !== undefined && sql.fragment`id < ${before}`,
    actor !== undefined && sql.fragment`lower(actor) = lower(${actor})`,
    action !== undefined && sql.fragment`${part} = ${action}`,
    from && sql.fragment`id >= ${firstIdAt(from)}`,
    to && sql.fragment`id < ${firstIdAt(to)}`,
  )
}

const COLUMNS = sql.fragment`id, team_id, actor, action, subject, detail, created_at`

/** Lists entries, newest first. With `before`, only entries older than that one. */
export const auditEntries = (tx: Tx, filter: AuditFilter) =>
  tx.any(sql.type(entryRow)`
    select ${COLUMNS} from audit_entries
    where ${matching(filter)} order by id desc limit ${filter.limit}`)

/** How many entries the parts of a search for a part of an address read. */
const PARTS = { first: 20_000, longest: 100_000 }

/** Searches entries of users with this text in their address, newest first. */
export const searchAuditEntries = (
  tx: Tx,
  { before, limit, ...filter }: Omit<AuditFilter, 'actor'> & { part: string },
): Promise<Searched<AuditRow>> =>
  searchParts({ before, limit, ...PARTS }, (part) => entriesOfPart(tx, { ...filter, ...part }))

async function entriesOfPart(
  tx: Tx,
  { length, ...filter }: Omit<AuditFilter, 'actor'> & SearchPart & { part: string },
): Promise<Searched<AuditRow>> {
  const fits = matching(filter)
  const oldest = await tx.maybeOneFirst(sql.type(idRow)`
    select id from audit_entries where ${fits} order by id desc offset ${length - 1} limit 1`)
  const rows = await tx.any(sql.type(entryRow)`
    select ${COLUMNS} from audit_entries
    where ${fits} and ${allOf(oldest !== null && sql.fragment`id >= ${oldest}`)}
      and strpos(lower(actor), lower(${filter.part})) > 0
    order by id desc limit ${filter.limit}`)
  return { rows, reached: oldest }
}
