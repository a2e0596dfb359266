/**
 * Rows of broadcasts, and the queries over them.
 * Promises: a state changes in one statement that names the states it may come from, so of two changes at once one
 * wins. Must not know what a state allows (state.ts), nor count anything.
 */
import { sql } from 'slonik'
import { array, type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { BROADCAST_STATES } from './state.ts'

const conditionRow = object({
  property: string().defined(),
  op: string().oneOf(['eq', 'ne', 'in', 'exists', 'missing', 'contains', 'gt', 'lt']).defined(),
  value: mixed<string | string[]>(),
})
/** What a contact's property must be. */
export type Condition = InferType<typeof conditionRow>

const broadcastRow = object({
  team_id: string().defined(),
  id: string().defined(),
  name: string().defined(),
  state: string().oneOf(BROADCAST_STATES).defined(),
  /** Why it is paused, when no person did it. */
  state_reason: string().defined().nullable(),
  from_address: string().defined(),
  reply_to: string().defined(),
  subject: string().defined(),
  template_id: string().defined(),
  topic_ids: array(string().defined()).defined(),
  exclude_topic_ids: array(string().defined()).defined(),
  conditions: array(conditionRow).defined(),
  variables: mixed<Record<string, string>>().defined(),
  headers: mixed<Record<string, string>>().defined().nullable(),
  tags: array(string().defined()).defined(),
  rate_per_minute: number().defined().nullable(),
  send_at: string().defined().nullable(),
  idempotency_key: string().defined().nullable(),
  /** Fixed when it is started or scheduled. */
  template_version_id: string().defined().nullable(),
  link_base: string().defined().nullable(),
  /** Contacts made from then on are none of its audience. */
  audience_until: string().defined().nullable(),
  audience: number().defined().nullable(),
  /** The last contact that the walk has passed; `walked_at`: when it had passed them all. */
  cursor: string().defined().nullable(),
  walked_at: string().defined().nullable(),
  created_at: string().defined(),
  updated_at: string().defined(),
  started_at: string().defined().nullable(),
  ended_at: string().defined().nullable(),
})
export type BroadcastRow = InferType<typeof broadcastRow>

const broadcastColumns = sql.fragment`
  team_id, id, name, state, state_reason, from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids,
  conditions, variables, headers, tags, rate_per_minute, send_at, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at`

/** The broadcast of this id, or null without one. */
export async function broadcastById(tx: Tx, teamId: string, id: string): Promise<BroadcastRow | null> {
  return tx.maybeOne(sql.prepared('broadcast_by_id', broadcastRow)`
    select ${broadcastColumns} from broadcasts where team_id = ${teamId} and id = ${id}`)
}
