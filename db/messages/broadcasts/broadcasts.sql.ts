/**
 * Rows of broadcasts. A state changes in one statement that names the allowed previous states, so that only one of
 * two concurrent changes succeeds. state.ts defines the allowed actions in each state.
 */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { BULK_PAUSE_REASONS, type BulkPause } from '../../accounts/teams/reputation.ts'
import { isSuspended } from '../../accounts/teams/teams.sql.ts'
import { ofTestTeam } from '../../channels/channel.sql.ts'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'

import { row } from '../../postgres/rows.ts'
import { compact } from '../../validation/keys.ts'

import { toUtc } from '../../validation/moments.ts'
import { OPERATORS } from './operators.ts'
import { BROADCAST_STATES, type BroadcastState } from './state.ts'

const conditionRow = object({
  property: string().defined(),
  op: string().oneOf(OPERATORS).defined(),
  value: mixed<string | string[]>(),
})
export type Condition = InferType<typeof conditionRow>

const brakeRow = row({
  /** Emails that had left since the count started. */
  left: number(),
  /** How many of them bounced, or were complained about. */
  count: number(),
  /** The percentage above which it is paused. */
  limit: number(),
})
export type Brake = InferType<typeof brakeRow>

const fieldsRow = row({
  name: string(),
  from_address: string(),
  reply_to: string(),
  subject: string(),
  template_id: string(),
  topic_ids: array(string()),
  exclude_topic_ids: array(string()),
  conditions: array(conditionRow),
  variables: mixed<Record<string, string>>(),
  headers: mixed<Record<string, string>>().nullable(),
  tags: array(string()),
  rate_per_minute: number().nullable(),
  send_at: string().nullable(),
})
export type BroadcastFields = InferType<typeof fieldsRow>

const FIELDS = sql.fragment`
  name, from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at`

const broadcastRow = fieldsRow.concat(
  row({
    team_id: string(),
    id: string(),
    state: string().oneOf(BROADCAST_STATES),
    /** Why it was paused automatically. */
    state_reason: string().nullable(),
    brake: mixed<Brake>().nullable(),
    idempotency_key: string().nullable(),
    /** Fixed when it is started or scheduled. */
    template_version_id: string().nullable(),
    link_base: string().nullable(),
    /** Contacts created later are not in its audience. */
    audience_until: string().nullable(),
    audience: number().nullable(),
    /** `cursor` is the last contact that the expansion passed. `walked_at` is when it had passed all. */
    cursor: string().nullable(),
    walked_at: string().nullable(),
    created_at: string(),
    updated_at: string(),
    started_at: string().nullable(),
    ended_at: string().nullable(),
  }),
)
export type BroadcastRow = InferType<typeof broadcastRow>
export type BroadcastKey = Pick<BroadcastRow, 'team_id' | 'id'>

const broadcastColumns = sql.fragment`
  team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base, audience_until, audience,
  cursor, walked_at, created_at, updated_at, started_at, ended_at, ${FIELDS}`

export const broadcastById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.prepared('broadcast_by_id', broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and id = ${id}`)

const json = (value: unknown) => (value === null ? null : JSON.stringify(value))

const valuesOf = (fields: BroadcastFields) => sql.fragment`
  ${fields.name}, ${fields.from_address}, ${fields.reply_to}, ${fields.subject}, ${fields.template_id}::uuid,
  ${sql.array(fields.topic_ids, 'uuid')}, ${sql.array(fields.exclude_topic_ids, 'uuid')},
  ${JSON.stringify(fields.conditions)}::json, ${JSON.stringify(fields.variables)}::json, ${json(fields.headers)}::json,
  ${JSON.stringify(fields.tags)}::json, ${fields.rate_per_minute}::integer, ${toUtc(fields.send_at)}::timestamptz`

type Draft = {
  team_id: string
  id: string
  idempotency_key: string | null
  fields: BroadcastFields
  at: Date
}

/** Stores a draft. @returns null when its key is stored already. */
export async function insertBroadcast(tx: Tx, draft: Draft) {
  const at = sql.timestamp(draft.at)
  return tx.maybeOne(sql.type(broadcastRow)`
    insert into broadcasts (team_id, id, idempotency_key, state, created_at, updated_at, ${FIELDS})
    values (${draft.team_id}, ${draft.id}, ${draft.idempotency_key}, 'draft', ${at}, ${at}, ${valuesOf(draft.fields)})
    on conflict (team_id, idempotency_key) where idempotency_key is not null do nothing
    returning ${broadcastColumns}`)
}

export const broadcastByKey = (tx: Tx, teamId: string, key: string) =>
  tx.maybeOne(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and idempotency_key = ${key}`)

export const lockBroadcast = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.prepared('lock_broadcast', broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and id = ${id} for no key update`)

const touched = (now: Date) =>
  sql.fragment`updated_at = greatest(${sql.timestamp(now)}, updated_at + interval '1 millisecond')`

/** Updates the fields of a draft. @returns the row, or null if it isn't a draft. */
export const updateDraft = (tx: Tx, { team_id, id }: BroadcastKey, fields: BroadcastFields, now: Date) =>
  tx.maybeOne(sql.type(broadcastRow)`
    update broadcasts set (${FIELDS}) = (select ${valuesOf(fields)}), ${touched(now)}
    where team_id = ${team_id} and id = ${id} and state = 'draft'
    returning ${broadcastColumns}`)

export async function deleteBroadcastDraft(tx: Tx, teamId: string, id: string): Promise<boolean> {
  const { rowCount } = await tx.query(sql.unsafe`
    delete from broadcasts where team_id = ${teamId} and id = ${id} and state = 'draft'`)
  return rowCount === 1
}

export async function broadcastsOfTeam(
  tx: Tx,
  teamId: string,
  {
    before,
    state,
    limit,
    offset = 0,
  }: { before?: string | undefined; state?: BroadcastState | undefined; limit: number; offset?: number },
) {
  const older = allOf(
    before !== undefined && sql.fragment`id < ${before}`,
    state !== undefined && sql.fragment`state = ${state}`,
  )
  return tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and ${older}
    order by id desc limit ${limit} offset ${offset}`)
}

const topicsRow = broadcastRow.pick([
  'id',
  'name',
  'state',
  'state_reason',
  'send_at',
  'started_at',
  'audience',
  'topic_ids',
])

/** Returns the team's newest broadcasts without their contents, which can be large. */
export const newestBroadcasts = (tx: Tx, teamId: string, limit: number) =>
  tx.any(sql.type(topicsRow)`
    select id, name, state, state_reason, send_at, started_at, audience, topic_ids from broadcasts
    where team_id = ${teamId}
    order by id desc limit ${limit}`)

export const openBroadcasts = (tx: Tx, teamId: string, limit: number) =>
  tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts
    where team_id = ${teamId} and state in ('sending', 'paused', 'scheduled')
    order by id desc limit ${limit}`)

const changedRow = broadcastRow.concat(row({ has_listeners: boolean() }))

/** The columns that change together with a state. Absent ones keep their value. */
export type StateChange = {
  from: readonly BroadcastState[]
  to: BroadcastState
  reason?: string
  /** Fixed at the start and open again in a draft: the template version, and the prefix of the links. */
  fixed?: { template_version_id: string | null; link_base: string | null; send_at: string | null }
  /** Set at the start, and again at the end, without contacts that left the audience in between. */
  audience?: number
}

/** Changes a state. The second of two concurrent changes fails. @returns the row, or null if not in a `from` state. */
export async function updateState(
  tx: Tx,
  { team_id, id }: BroadcastKey,
  { from, to, reason, fixed, audience }: StateChange,
  now: Date,
) {
  const at = sql.timestamp(now)
  const sets = compact([
    sql.fragment`state = ${to}, state_reason = ${reason ?? null}, ${touched(now)}`,
    fixed !== undefined &&
      sql.fragment`template_version_id = ${fixed.template_version_id}, link_base = ${fixed.link_base},
            send_at = ${toUtc(fixed.send_at)}`,
    audience !== undefined && sql.fragment`audience = ${audience}`,
    audience !== undefined && to !== 'sent' && sql.fragment`audience_until = ${at}, started_at = ${at}`,
    (to === 'sent' || to === 'cancelled') && sql.fragment`ended_at = ${at}`,
  ])
  return tx.maybeOne(sql.type(changedRow)`
    update broadcasts set ${sql.join(sets, sql.fragment`, `)}
    where team_id = ${team_id} and id = ${id} and state = any(${sql.array(from, 'text')})
    returning ${broadcastColumns}, ${hasListeners(sql.fragment`broadcasts.team_id`)} as has_listeners`)
}

/** Locks all scheduled broadcasts and those being sent, of all teams. */
export const lockUnderWay = (tx: Tx) =>
  tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts where state in ('scheduled', 'sending')
    order by team_id, id for no key update`)

/** Locks a team's broadcasts that are being sent. */
export const lockSendingBroadcasts = (tx: Tx, teamId: string) =>
  tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and state = 'sending'
    order by id for no key update`)

/** Locks a team's broadcasts that are paused for its reputation. */
export const lockBulkPaused = (tx: Tx, teamId: string) =>
  tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts
    where team_id = ${teamId} and state = 'paused' and state_reason = any(${sql.array(BULK_PAUSE_REASONS, 'text')})
    order by id for no key update`)

export const saveAutoPause = (tx: Tx, { team_id, id }: BroadcastKey, brake: Brake) =>
  tx.query(sql.unsafe`
    update broadcasts set brake = ${JSON.stringify(brake)} where team_id = ${team_id} and id = ${id}`)

/** Locks the automatically paused broadcasts of all teams with this reason. */
export const broadcastsPausedFor = (tx: Tx, reason: string) =>
  tx.any(sql.type(broadcastRow)`
    select ${broadcastColumns} from broadcasts where state = 'paused' and state_reason = ${reason}
    order by team_id, id for no key update`)

/** Moves the cursor of the expansion. `ended`: it has passed all contacts. */
export const moveCursor = (
  tx: Tx,
  { team_id, id }: BroadcastKey,
  { cursor, ended }: { cursor: string | null; ended: boolean },
  now: Date,
) =>
  tx.query(sql.unsafe`
    update broadcasts set cursor = ${cursor}, walked_at = ${ended ? sql.timestamp(now) : null}
    where team_id = ${team_id} and id = ${id}`)

const placeRow = row({
  is_test: boolean(),
  is_home: boolean(),
  is_suspended: boolean(),
  bulk_pause: mixed<BulkPause>().nullable(),
})

/**
 * Returns whether this database sends (a restored copy doesn't), whether the team is a test team or suspended, and
 * the pause of its bulk email, or null.
 */
export const readSendingPlace = (tx: Tx, { team_id, id }: BroadcastKey) =>
  tx.one(sql.prepared('place_of_broadcast', placeRow)`
    select is_at_home() as is_home, ${ofTestTeam} as is_test,
      ${isSuspended(sql.fragment`broadcasts.team_id`)} as is_suspended,
      (select bulk_pause from teams t where t.id = broadcasts.team_id and t.bulk_paused_at is not null)
    from broadcasts where team_id = ${team_id} and id = ${id}`)
