/**
 * Accepts WhatsApp sends for a team: checks them, charges the allowance, stores one row per recipient and enqueues
 * delivery, all or nothing. Promises: one path for a single send and a batch, in the same round trips (begin,
 * templates, lock, replays, rows with their charge, jobs, commit), whatever the number of recipients; the allowance is
 * never exceeded, a key never gets a second request; an item is taken whole or not at all. Never talks to a provider.
 * Contract §4.3, §8; decisions: WhatsApp.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { type Account, chargeOf, left, lockAccount } from '../teams/limits.ts'
import { idsAt } from '../text/ids.ts'
import type { Phone } from '../text/phone.ts'
import {
  insertRequests,
  type NewMessage,
  type NewRequest,
  requestsByKeys,
  type SentRow,
} from './messages.sql.ts'
import { parametersProblem } from './template.ts'
import { type SendableTemplate, templatesByIds } from './templates.sql.ts'

/** A send whose fields are valid by themselves; each number once. */
export type WhatsappItem = {
  /** Where it lies in the call, such as `messages[3].`, for messages that name its fields; '' for a single send. */
  path: string
  template_id: string
  to: readonly Phone[]
  parameters: Readonly<Record<string, string>>
  idempotency_key: string | null
}

/** A request and its messages, in the order of its recipients. */
type Stored = { request: NewRequest; messages: readonly NewMessage[] }

/** What became of one item: new rows, the request its key was stored under, or a refusal. */
export type WhatsappOutcome =
  | { kind: 'stored'; first_id: string; rows: SentRow[] }
  | { kind: 'replayed'; first_id: string; request_id: string }
  | { kind: 'refused'; refusal: Refusal }

type Decision = WhatsappOutcome | { kind: 'new'; item: WhatsappItem }

/** Why the template can't be sent with these parameters, in the order that decisions.md gives; null when it can. */
function refusalOf(item: WhatsappItem, templates: Templates): Refusal | null {
  const template = templates.get(item.template_id)
  if (!template)
    return new Refusal('not_found', `${item.path}template_id: there is no template ${item.template_id}`)
  if (template.status !== 'approved') {
    return new Refusal(
      'template_disabled',
      `the template is ${template.status}; only an approved one can be sent`,
    )
  }
  if (template.unsupported !== null) {
    return new Refusal('template_unsupported', `the template can't be sent: ${template.unsupported}`)
  }
  const problem = parametersProblem(template.slots, item.parameters)
  return problem === null ? null : new Refusal('invalid_params', `${item.path}${problem}`)
}

type Templates = ReadonlyMap<string, SendableTemplate>

async function findTemplates(tx: Tx, teamId: string, items: readonly WhatsappItem[]): Promise<Templates> {
  const ids = [...new Set(items.map((item) => item.template_id))]
  const rows = await templatesByIds(tx, teamId, ids)
  return new Map(rows.map((row) => [row.id, row]))
}

async function storedKeys(tx: Tx, teamId: string, items: readonly WhatsappItem[]) {
  const keys = [...new Set(items.map((item) => item.idempotency_key))].filter((key) => key !== null)
  const rows = keys.length === 0 ? [] : await requestsByKeys(tx, teamId, keys)
  return new Map(rows.map((row) => [row.idempotency_key, row]))
}

/** Each item's fate as far as it needs no room: a replay, a refusal, or new. The account must be locked. */
async function decide(
  tx: Tx,
  teamId: string,
  items: readonly WhatsappItem[],
  templates: Templates,
): Promise<Decision[]> {
  const stored = await storedKeys(tx, teamId, items)
  return items.map((item): Decision => {
    const original = item.idempotency_key === null ? undefined : stored.get(item.idempotency_key)
    if (original) return { kind: 'replayed', ...original }
    const refusal = refusalOf(item, templates)
    return refusal ? { kind: 'refused', refusal } : { kind: 'new', item }
  })
}

/** Where and when rows are stored. */
type Place = { team_id: string; created_at: string; nextId: () => string }

function build({ team_id, created_at, nextId }: Place, item: WhatsappItem): Stored {
  const { template_id, parameters, idempotency_key } = item
  const request = { team_id, id: nextId(), template_id, parameters, idempotency_key, created_at }
  const messages = item.to.map(({ e164, country }, position) => ({
    team_id,
    id: nextId(),
    request_id: request.id,
    position,
    recipient: e164,
    country,
    created_at,
  }))
  return { request, messages }
}

const sentRows = ({ messages }: Stored): SentRow[] =>
  messages.map(({ id, recipient }) => ({ id, recipient, status: 'queued' }))

const placeOf = (team_id: string, { now }: Account): Place => ({
  team_id,
  created_at: now.toISOString(),
  nextId: idsAt(now),
})

/** Gives each new item its rows, in order; a key met again gets those it has just made. */
function buildAll(place: Place, decisions: readonly Decision[]) {
  const made = new Map<string, Stored>()
  const stored: Stored[] = []
  const outcomes = decisions.map((decision): WhatsappOutcome => {
    if (decision.kind !== 'new') return decision
    const { idempotency_key: key } = decision.item
    const twin = key === null ? undefined : made.get(key)
    if (twin) return { kind: 'replayed', first_id: firstOf(twin), request_id: twin.request.id }
    const built = build(place, decision.item)
    stored.push(built)
    if (key !== null) made.set(key, built)
    return { kind: 'stored', first_id: firstOf(built), rows: sentRows(built) }
  })
  return { stored, outcomes }
}

function firstOf({ messages }: Stored): string {
  const [first] = messages
  if (!first) throw new Error('an item must have a recipient')
  return first.id
}

/** Charges the rows to the account. @throws Refusal quota_exceeded when they don't all fit. */
function charge(account: Account, rows: number): void {
  if (rows > left(account.limits.whatsapp, account.used.whatsapp)) {
    const told = `the allowance of ${account.limits.whatsapp} WhatsApp messages for this period is reached`
    throw new Refusal('quota_exceeded', told)
  }
  account.used.whatsapp += rows
}

/**
 * Accepts items in order; each has its own outcome. Enqueues `deliver-whatsapp` for each new row.
 * @throws Refusal quota_exceeded when the new rows would not all fit the allowance: then nothing is stored.
 */
export async function acceptWhatsapp(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  teamId: string,
  items: readonly WhatsappItem[],
): Promise<WhatsappOutcome[]> {
  const templates = await findTemplates(tx, teamId, items)
  const account = await lockAccount(tx, teamId)
  const decisions = await decide(tx, teamId, items, templates)
  const { stored, outcomes } = buildAll(placeOf(teamId, account), decisions)
  const messages = stored.flatMap((one) => one.messages)
  if (messages.length === 0) return outcomes
  charge(account, messages.length)
  const requests = stored.map(({ request }) => request)
  await insertRequests(tx, { requests, messages }, chargeOf(teamId, account))
  const refs = messages.map(({ id }) => ({ team_id: teamId, message_id: id }))
  const jobs = await queue.enqueue(tx, 'deliver-whatsapp', refs)
  if (jobs !== messages.length) throw new Error(`stored ${messages.length} messages but ${jobs} jobs`)
  return outcomes
}
