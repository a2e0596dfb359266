/**
 * Creates, changes and deletes drafts of broadcasts in the caller's transaction. The template and topics of a draft
 * belong to its team. start.ts checks whether a draft can be sent.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Caller, record } from '../../accounts/audit/record.ts'
import { holdTopics } from '../../audience/contacts/topics.sql.ts'
import { templateById } from '../../content/templates/templates.sql.ts'
import { fieldError, invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idAt } from '../../process/ids.ts'
import { parseMailbox } from '../../validation/address.ts'
import { momentFault } from '../../validation/moments.ts'
import { isUuid } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import {
  type BroadcastFields,
  type BroadcastRow,
  broadcastById,
  broadcastByKey,
  deleteBroadcastDraft,
  insertBroadcast,
  lockBroadcast,
  updateDraft,
} from './broadcasts.sql.ts'
import { type GivenFields, LONGEST_BROADCAST_NAME, type NewBroadcast } from './fields.ts'

/** `domain`: the only one that the API key can use. */
export type Acting = { team_id: string; domain: string | null }

export const recordBroadcast = (
  by: Caller,
  verb: string,
  { team_id, id, name }: BroadcastRow,
): Promise<void> => record(by, { team_id, action: `broadcast.${verb}`, subject: name, detail: id })

const noBroadcast = (id: string): RequestError => requestError('not_found', TEXTS.noBroadcast, { id })

/** Returns a broadcast. @throws RequestError not_found. */
export async function requireBroadcast(tx: Tx, teamId: string, id: string): Promise<BroadcastRow> {
  const row = isUuid(id) ? await broadcastById(tx, teamId, id) : null
  if (!row) throw noBroadcast(id)
  return row
}

/** Locks the broadcast until the transaction ends. @throws RequestError not_found, domain_not_allowed. */
export async function requireLocked(tx: Tx, acting: Acting, id: string): Promise<BroadcastRow> {
  const row = isUuid(id) ? await lockBroadcast(tx, acting.team_id, id) : null
  if (!row) throw noBroadcast(id)
  assertDomain(acting, row.from_address)
  return row
}

export const domainOf = (from: string): string => parseMailbox(from)?.domain ?? ''

/** @throws RequestError domain_not_allowed if the key is limited to another domain. */
export function assertDomain({ domain }: Acting, from: string): void {
  if (domain === null || domain === domainOf(from)) return
  throw fieldError('domain_not_allowed', 'from', TEXTS.domainOfKey, { domain })
}

/** @throws RequestError bad_request for a time in the past or too far ahead. */
export function assertSendAt(send_at: string | null | undefined, now: Date): void {
  const problem = send_at ? momentFault(send_at, now) : null
  if (problem !== null) throw invalidField('send_at', problem)
}

async function assertReferences(tx: Tx, teamId: string, fields: GivenFields): Promise<void> {
  const { template_id } = fields
  if (template_id !== undefined && !(await templateById(tx, teamId, template_id)))
    throw fieldError('not_found', 'template_id', TEXTS.noTemplateOfField, { id: template_id })
  for (const field of ['topic_ids', 'exclude_topic_ids'] as const) {
    const ids = fields[field] ?? []
    const known = ids.length === 0 ? new Set<string>() : await holdTopics(tx, teamId, ids)
    const unknown = ids.findIndex((id) => !known.has(id))
    if (unknown < 0) continue
    throw fieldError('not_found', `${field}[${unknown}]`, TEXTS.noTopicOfField, { id: ids[unknown] ?? '' })
  }
}

const EMPTY = {
  reply_to: '',
  topic_ids: [],
  exclude_topic_ids: [],
  conditions: [],
  variables: {},
  headers: null,
  tags: [],
  rate_per_minute: null,
  send_at: null,
}

/** Stores a draft and its entry in the audit log. @returns null if its key already exists. */
async function storeDraft(by: Caller, team_id: string, { fields, idempotency_key }: NewBroadcast) {
  const { tx, now } = by
  const draft = { team_id, id: idAt(now), idempotency_key, at: now }
  const row = await insertBroadcast(tx, { ...draft, fields: { ...EMPTY, ...fields } as BroadcastFields })
  if (row) await recordBroadcast(by, 'create', row)
  return row
}

/**
 * Stores a draft, or returns the existing one with this key.
 * @throws RequestError bad_request, domain_not_allowed, not_found.
 */
export async function createBroadcast(by: Caller, acting: Acting, { fields, idempotency_key }: NewBroadcast) {
  const { tx, now } = by
  const { team_id } = acting
  const known = idempotency_key === null ? null : await broadcastByKey(tx, team_id, idempotency_key)
  if (known) {
    assertDomain(acting, known.from_address)
    return { row: known, isNew: false }
  }
  assertSendAt(fields.send_at, now)
  assertDomain(acting, fields.from_address ?? '')
  await assertReferences(tx, team_id, fields)
  const row = await storeDraft(by, team_id, { fields, idempotency_key })
  if (row) return { row, isNew: true }
  const other = await broadcastByKey(tx, team_id, idempotency_key ?? '')
  if (!other) throw new Error('no broadcast has this key, although it is in use')
  assertDomain(acting, other.from_address)
  return { row: other, isNew: false }
}

const notADraft = ({ state }: BroadcastRow, act: string): RequestError =>
  requestError('invalid_state', TEXTS.notDraft, { state, action: act })

/** @param act a past participle, such as `deleted`. @throws RequestError invalid_state. */
export function assertDraft(row: BroadcastRow, act: string): void {
  if (row.state !== 'draft') throw notADraft(row, act)
}

const toInstant = (send_at: string | null): number | null => (send_at === null ? null : Date.parse(send_at))

const saysAlready = (row: BroadcastRow, { send_at = row.send_at, ...fields }: GivenFields): boolean =>
  isDeepStrictEqual({ ...row, ...fields }, row) && toInstant(send_at) === toInstant(row.send_at)

/**
 * Changes the fields of a draft. Writes nothing if they are the same.
 * @throws RequestError bad_request, not_found, invalid_state, domain_not_allowed.
 */
export async function changeBroadcast(by: Caller, acting: Acting, id: string, fields: GivenFields) {
  const { tx, now } = by
  assertSendAt(fields.send_at, now)
  const row = await requireLocked(tx, acting, id)
  assertDomain(acting, fields.from_address ?? row.from_address)
  assertDraft(row, 'changed')
  await assertReferences(tx, acting.team_id, fields)
  if (saysAlready(row, fields)) return row
  const changed = await updateDraft(tx, row, { ...row, ...fields }, now)
  if (!changed) throw notADraft(row, 'changed')
  await recordBroadcast(by, 'update', changed)
  return changed
}

/**
 * Does the same as `changeBroadcast` for a user who has seen the draft.
 * @param seen the last change of the draft that the user saw. Later changes reject this one.
 * @throws RequestError as `changeBroadcast`.
 */
export async function changeSeenBroadcast(
  by: Caller,
  acting: Acting,
  id: string,
  { fields, seen }: { fields: GivenFields; seen: string },
): Promise<BroadcastRow> {
  const row = await requireLocked(by.tx, acting, id)
  if (row.updated_at !== seen) throw new RequestError('bad_request', TEXTS.savedByOther)
  return changeBroadcast(by, acting, id, fields)
}

/**
 * Creates a draft with the fields of another broadcast in any state, without a start time.
 * @throws RequestError not_found, domain_not_allowed.
 */
export async function duplicateBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const { name, ...said } = await requireBroadcast(by.tx, acting.team_id, id)
  assertDomain(acting, said.from_address)
  const fields = {
    ...said,
    name: [...`Copy of ${name}`].slice(0, LONGEST_BROADCAST_NAME).join(''),
    send_at: null,
  }
  await holdTopics(by.tx, acting.team_id, [...said.topic_ids, ...said.exclude_topic_ids])
  const row = await storeDraft(by, acting.team_id, { fields, idempotency_key: null })
  if (!row) throw new Error('a draft without a key is always stored')
  return row
}

/** @throws RequestError not_found, invalid_state, domain_not_allowed. */
export async function removeBroadcast(by: Caller, acting: Acting, id: string): Promise<BroadcastRow> {
  const { tx } = by
  const row = await requireLocked(tx, acting, id)
  if (row.state !== 'draft' || !(await deleteBroadcastDraft(tx, acting.team_id, row.id)))
    throw notADraft(row, 'deleted')
  await recordBroadcast(by, 'delete', row)
  return row
}
