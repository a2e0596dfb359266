/**
 * Accepts WhatsApp sends: checks them, charges each team's quota, stores one row per recipient and enqueues delivery,
 * all or nothing. The number of round trips doesn't depend on the number of recipients: BEGIN and templates, locks,
 * replays if there are keys, and rows with charges, jobs and COMMIT. An item is accepted completely or not at all.
 * DECISIONS: Order of errors.
 */

import { left, lockWhatsappAccounts, type WhatsappAccount } from '../../accounts/teams/limits.ts'
import { LimitReached } from '../../accounts/teams/rate-limit.ts'
import { fieldError, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idsAt } from '../../process/ids.ts'
import type { Producer } from '../../queue/producer.ts'
import { computeTimes, timeError, type When } from '../../validation/moments.ts'
import type { Phone } from '../../validation/phone.ts'
import { acceptCalls, type CallEnd, chargesAndJobs, onlyEnd } from '../accept-calls.ts'
import { findOriginal, readKeys, type StoredKeys } from '../idempotency.ts'
import {
  insertRequests,
  type NewMessage,
  type NewRequest,
  requestsByKeys,
  type SentRow,
} from './messages.sql.ts'
import { parametersProblem } from './parameters.ts'
import { hasNewParts } from './template.ts'
import { type SendableTemplate, templatesByIds } from './templates.sql.ts'
import { TEXTS } from './texts.ts'

/** A send with valid fields. Each number appears once. */
export type WhatsappItem = {
  /** The item's path in the call, such as `messages[3].`, for errors. '' for a single send. */
  path: string
  template_id: string
  to: readonly Phone[]
  parameters: Readonly<Record<string, string>>
  idempotency_key: string | null
  /** Without it, it is sent at once and does not expire. */
  when?: When
}

type Stored = { team_id: string; request: NewRequest; messages: readonly NewMessage[]; line: Line }

/** The lane of a message (DECISIONS: Lanes). */
type Line = 'whatsapp' | 'whatsapp_batch' | 'whatsapp_parts' | 'whatsapp_parts_batch'

/** The outcome of one item: new rows, the request with its key, or an error. */
export type WhatsappOutcome =
  | { kind: 'stored'; first_id: string; rows: SentRow[] }
  | { kind: 'replayed'; first_id: string; request_id: string }
  | { kind: 'refused'; refusal: RequestError }

type Taken = { made: Stored[]; outcomes: WhatsappOutcome[] }

/** A single send has one item, a batch up to 100. */
export type WhatsappCall = {
  team_id: string
  items: readonly WhatsappItem[]
  http_request_id?: string
  /** True for a batch. Its messages have their own lane, so that the team's single sends pass them. */
  batch?: true
}

type AcceptDeps = {
  tx: Tx
  queue: Pick<Producer, 'storing' | 'reached'>
  /** True if the transaction has no further statement, and its last one can commit it. */
  last?: boolean
}

/** Returns why the template can't be sent with these parameters (DECISIONS: Order of errors), or null. */
function templateError(item: WhatsappItem, { account, templates }: TeamBatch): RequestError | null {
  const template = templates.get(item.template_id)
  if (!template) {
    const { path, template_id: id } = item
    return fieldError('not_found', `${path}template_id`, TEXTS.noTemplateOfField, { id })
  }
  const business = account.number?.account_id ?? template.default_account
  if (!account.test && (template.account_id ?? template.default_account) !== business) {
    return new RequestError(
      'template_disabled',
      `The template hasn't been found in the team's WhatsApp Business Account${business === null ? '' : ` ${business}`}. Create it there, then sync the templates.`,
    )
  }
  if (template.status !== 'approved') {
    return requestError('template_disabled', TEXTS.templateNotApproved, { status: template.status })
  }
  if (template.unsupported !== null) {
    return requestError('template_unsupported', TEXTS.templateUnsupported, { reason: template.unsupported })
  }
  const fault = parametersProblem(template.slots, template.parts, item.parameters)
  return fault && new RequestError('invalid_params', { ...fault, field: item.path + fault.field })
}

/** The calls of one team that are accepted together. Its account is locked. */
type TeamBatch = {
  account: WhatsappAccount
  templates: Map<string, SendableTemplate>
  stored: StoredKeys<StoredKey>
  nextId: () => string
}

type StoredKey = { first_id: string; request_id: string }

async function openTeamBatches(tx: Tx, calls: readonly WhatsappCall[], lock: 'wait' | 'skip') {
  const named = calls.flatMap(({ team_id, items }) =>
    items.map(({ template_id: id, idempotency_key: key }) => ({ team_id, id, key })),
  )
  const templates = await templatesByIds(tx, named)
  const teams = calls.map(({ team_id }) => team_id)
  const batches = new Map<string, TeamBatch>()
  for (const [teamId, account] of await lockWhatsappAccounts(tx, teams, lock)) {
    batches.set(teamId, { account, templates: new Map(), stored: new Map(), nextId: idsAt(account.now) })
  }
  for (const row of templates) batches.get(row.team_id)?.templates.set(row.id, row)
  await readKeys(batches, named, {
    read: (keys) => requestsByKeys(tx, keys),
    keyOf: ({ request_id, first_id }) => ({ request_id, first_id }),
  })
  return batches
}

function build(
  item: WhatsappItem,
  { team_id, http_request_id, batch }: WhatsappCall,
  { account: { now, number, test }, templates, nextId }: TeamBatch,
): Stored {
  const { template_id, parameters, idempotency_key, when } = item
  const parts = hasNewParts(templates.get(template_id)?.parts ?? null)
  const created_at = now.toISOString()
  const times = computeTimes(when, now)
  const request = {
    ...{ team_id, id: nextId(), template_id, parameters, idempotency_key, created_at },
    http_request_id: http_request_id ?? null,
  }
  const messages = item.to.map(({ e164: recipient, country }, position) => ({
    ...{ team_id, id: nextId(), request_id: request.id, position, recipient, country, created_at },
    phone_number_id: number?.phone_number_id ?? null,
    parts,
    ...times,
  }))
  const line = parts && number === null && !test ? 'whatsapp_parts' : 'whatsapp'
  return { team_id, request, messages, line: batch ? `${line}_batch` : line }
}

const sentRows = ({ messages }: Stored): SentRow[] =>
  messages.map(({ id, recipient, scheduled_at, expires_at }) => ({
    ...{ id, recipient, scheduled_at, expires_at },
    status: 'queued',
  }))

/**
 * Creates the rows of new items, in order. A repeated key is a replay, even if the later item is invalid. Nothing is
 * charged yet.
 */
function buildAll(call: WhatsappCall, batch: TeamBatch) {
  const { account, stored } = batch
  const made: Stored[] = []
  const keys = new Map<string, StoredKey>()
  const outcomes = call.items.map((item): WhatsappOutcome => {
    const { idempotency_key: key } = item
    const original = findOriginal(item, stored) ?? findOriginal(item, keys)
    if (original) return { kind: 'replayed', ...original }
    const refusal = timeError(item, account.now) ?? templateError(item, batch)
    if (refusal) return { kind: 'refused', refusal }
    const built = build(item, call, batch)
    made.push(built)
    if (key !== null) keys.set(key, storedKey(built))
    return { kind: 'stored', first_id: firstId(built), rows: sentRows(built) }
  })
  return { made, outcomes }
}

const storedKey = (built: Stored): StoredKey => ({ first_id: firstId(built), request_id: built.request.id })

function firstId({ messages }: Stored): string {
  const [first] = messages
  if (!first) throw new Error('an item must have a recipient')
  return first.id
}

/** Accepts a call's items in order. Returns an error for all of them if their rows don't fit the quota. */
function take(call: WhatsappCall, batch: TeamBatch): Taken | RequestError {
  const { limits, used } = batch.account
  const { made, outcomes } = buildAll(call, batch)
  const rows = made.flatMap(({ messages }) => messages).length
  if (rows > left(limits.whatsapp, used.whatsapp)) {
    const limit = limits.whatsapp?.toLocaleString('en') ?? 'no'
    return new LimitReached(batch.account, requestError('quota_exceeded', TEXTS.whatsappQuota, { limit }))
  }
  used.whatsapp += rows
  for (const stored of made) {
    const { idempotency_key: key } = stored.request
    if (key !== null) batch.stored.set(key, storedKey(stored))
  }
  return { made, outcomes }
}

async function commit(
  { tx, queue, last = false }: AcceptDeps,
  made: readonly Stored[],
  batches: ReadonlyMap<string, TeamBatch>,
): Promise<void> {
  const messages = made.flatMap((one) => one.messages)
  const parts = await chargesAndJobs({ tx, queue }, made, batches, {
    also: () => ({}),
    numberOf: (teamId) => batches.get(teamId)?.account.number ?? null,
  })
  await insertRequests(tx, { requests: made.map(({ request }) => request), messages }, { ...parts, last })
}

/**
 * Accepts calls of any teams in one transaction, in order, and enqueues the delivery of each new row.
 * @param lock `skip` skips the calls of teams that another transaction has locked.
 * @returns the outcomes of each call's items, in order. An error if its new rows don't all fit the quota, and then
 * none of the call is stored. Null if it was skipped.
 */
export async function acceptWhatsappCalls(
  deps: AcceptDeps,
  calls: readonly WhatsappCall[],
  lock: 'wait' | 'skip',
): Promise<CallEnd<WhatsappOutcome>[]> {
  const batches = await openTeamBatches(deps.tx, calls, lock)
  return acceptCalls(calls, batches, { take, commit: (made) => commit(deps, made, batches) })
}

/** Accepts one call. @throws RequestError quota_exceeded if its new rows don't all fit the quota. */
export async function acceptWhatsapp(deps: AcceptDeps, call: WhatsappCall): Promise<WhatsappOutcome[]> {
  return onlyEnd(await acceptWhatsappCalls(deps, [call], 'wait'))
}
