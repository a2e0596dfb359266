/**
 * Creates a webhook message, with body and job, for each domain event and subscribed endpoint, in the transaction of
 * the event. For a recently disabled endpoint, only the body is stored, as failed. An email's delay is sent once,
 * internal email never. A few statements for any number of events.
 */
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { parseMailbox } from '../../validation/address.ts'
import { type Addressed, addressees } from '../../validation/addressees.ts'
import type { DomainEvent } from './domain-event.ts'
import { rankOf, TEST_TYPE, toWebhookType, type WebhookType } from './webhook-types.ts'
import {
  contactFacts,
  emailFacts,
  endpointsToNotify,
  insertWebhooks,
  type NewWebhook,
  wants,
} from './webhooks.sql.ts'
import { whatsappFacts } from './whatsapp-webhooks.sql.ts'

/** The maximum length of a provider's message in a webhook, in characters. */
const LONGEST_DETAIL = 1_000

type Typed = { domainEvent: DomainEvent; type: WebhookType }

const writeBody = (type: string, at: Date, data: object): string =>
  JSON.stringify({ type, timestamp: at.toISOString(), data })

const domainOf = (from: string): string | null => parseMailbox(from)?.domain ?? null

const shortenDetail = ({ detail }: DomainEvent): string => [...detail].slice(0, LONGEST_DETAIL).join('')

/**
 * Makes the content of a webhook, once per event for all endpoints.
 * @param domain the sending domain of an email or broadcast, or the domain that the event is about.
 */
const toDraft = ({ domainEvent, type }: Typed, domain: string | null, data: object) => ({
  team_id: domainEvent.team_id,
  event_id: idNow(),
  type,
  subject_id: domainEvent.id,
  domain,
  body: writeBody(type, domainEvent.occurred_at, data),
})

type Draft = ReturnType<typeof toDraft>

/** Stores a message for each matching endpoint. */
async function store(
  tx: Tx,
  drafts: readonly Draft[],
  endpoints: Awaited<ReturnType<typeof endpointsToNotify>>,
) {
  const messages = drafts.flatMap(({ domain, ...each }) =>
    endpoints
      .filter((one) => one.team_id === each.team_id && wants(one.types, each.type))
      .filter((one) => one.domain === null || one.domain === domain)
      .map(({ id, enabled }): NewWebhook => ({ ...each, id: idNow(), endpoint_id: id, enabled })),
  )
  await storeWebhooks(tx, messages)
}

/** Stores messages, those to be sent with their jobs. */
async function storeWebhooks(tx: Tx, messages: readonly NewWebhook[]): Promise<void> {
  if (messages.length === 0) return
  await insertWebhooks(tx, messages)
  if (messages.some(({ enabled }) => enabled)) await wakeOnCommit(tx, 'deliver-webhook')
}

/** Returns the recipients of an email. `cc` and `bcc` are absent if empty. */
function addressedTo(row: Addressed) {
  const { to, cc, bcc } = addressees(row)
  return { to, ...(cc.length > 0 ? { cc } : {}), ...(bcc.length > 0 ? { bcc } : {}) }
}

async function buildEmails(tx: Tx, typed: readonly Typed[]): Promise<Draft[]> {
  const rows = new Map((await emailFacts(tx, refsOf(typed))).map((row) => [row.id, row]))
  const delays = Map.groupBy(
    typed.filter(({ type }) => type === 'email.delivery_delayed'),
    ({ domainEvent }) => domainEvent.id,
  )
  return typed.flatMap((each) => {
    const { domainEvent, type } = each
    const row = rows.get(domainEvent.id ?? '')
    if (!row) return []
    const fresh = delays.get(row.id) ?? []
    // If earlier delays are recorded, the webhook was sent before.
    if (type === 'email.delivery_delayed' && (fresh[0] !== each || row.delays > fresh.length)) return []
    const { from_address: from, subject, tags, template_id, idempotency_key, broadcast_id, requeued_at } = row
    const recipient = 'recipient' in domainEvent ? domainEvent.recipient : null
    const about = { from, ...addressedTo(row), recipient, subject, tags, template_id, idempotency_key }
    const data = { email_id: row.id, broadcast_id, ...about }
    const standing = { requeued_at, rank: rankOf(domainEvent), detail: shortenDetail(domainEvent) }
    return [toDraft(each, domainOf(from), { ...data, ...standing })]
  })
}

/** Creates the webhooks for subjects that still exist. @param say returns the data for a row. */
async function draftsAbout<R extends { id: string }>(
  typed: readonly Typed[],
  facts: Promise<readonly R[]>,
  say: (row: R, domainEvent: DomainEvent) => object,
): Promise<Draft[]> {
  const rows = new Map((await facts).map((row) => [row.id, row]))
  return typed.flatMap((each) => {
    const { domainEvent } = each
    const row = rows.get(domainEvent.id ?? '')
    return row ? [toDraft(each, null, { ...say(row, domainEvent), detail: shortenDetail(domainEvent) })] : []
  })
}

const buildWhatsapp = (tx: Tx, typed: readonly Typed[]) =>
  draftsAbout(typed, whatsappFacts(tx, refsOf(typed)), ({ id, recipient, ...row }, domainEvent) => ({
    ...{ message_id: id, to: recipient, recipient, ...row, rank: rankOf(domainEvent) },
  }))

/** Changes of contacts, and of suppressions of addresses that aren't contacts. */
async function buildContacts(tx: Tx, typed: readonly Typed[]): Promise<Draft[]> {
  const rows = new Map((await contactFacts(tx, refsOf(typed))).map((row) => [row.id, row]))
  return typed.flatMap((each) => {
    const { domainEvent } = each
    if (domainEvent.subject !== 'contact') return []
    const { id, about, topic_ids } = domainEvent
    const row = id === null ? { id, email: about?.email, status: null, suppression: null } : rows.get(id)
    if (!row) return []
    const { id: contact_id, ...facts } = row
    const data = { contact_id, ...facts, topic_ids, ...about, detail: shortenDetail(domainEvent) }
    return [toDraft(each, null, data)]
  })
}

/** Returns each subject once, in order. */
const refsOf = (typed: readonly Typed[]) => [
  ...new Map(
    typed.flatMap(({ domainEvent: { team_id, id } }) =>
      id === null ? [] : [[id, { team_id, id }] as const],
    ),
  ).values(),
]

async function buildBroadcasts(_tx: Tx, typed: readonly Typed[]): Promise<Draft[]> {
  return typed.flatMap(({ domainEvent, type }) => {
    if (domainEvent.subject !== 'broadcast') return []
    const { id: broadcast_id, about } = domainEvent
    const data = { broadcast_id, ...about, detail: shortenDetail(domainEvent) }
    return [toDraft({ domainEvent, type }, domainOf(about.from), data)]
  })
}

async function buildDomains(_tx: Tx, typed: readonly Typed[]): Promise<Draft[]> {
  return typed.flatMap(({ domainEvent, type }) => {
    if (domainEvent.subject !== 'domain') return []
    const { id: domain_id, about } = domainEvent
    const data = { domain_id, ...about, detail: shortenDetail(domainEvent) }
    return [toDraft({ domainEvent, type }, about.name, data)]
  })
}

/** Events about teams and other subjects contain all of their data. */
async function buildOthers(_tx: Tx, typed: readonly Typed[]): Promise<Draft[]> {
  return typed.flatMap(({ domainEvent, type }) =>
    domainEvent.subject === 'team' || domainEvent.subject === 'other'
      ? [toDraft({ domainEvent, type }, null, domainEvent.about)]
      : [],
  )
}

/** Creates the webhooks for events of one kind of subject. */
type Drafter = (tx: Tx, typed: readonly Typed[]) => Promise<Draft[]>

const DRAFTERS = {
  email: buildEmails,
  whatsapp: buildWhatsapp,
  contact: buildContacts,
  broadcast: buildBroadcasts,
  domain: buildDomains,
  team: buildOthers,
  other: buildOthers,
} as const satisfies Record<Exclude<DomainEvent['subject'], 'webhook'>, Drafter>

/**
 * Creates the webhook messages for new domain events, in the transaction that stores them. Only call it for teams
 * with webhooks (webhooks.sql.ts, hasListeners), so that others need no statement.
 */
export async function publish(tx: Tx, domainEvents: readonly DomainEvent[]): Promise<void> {
  const typed = domainEvents.flatMap((domainEvent) => {
    const type = toWebhookType(domainEvent)
    return type === null ? [] : [{ domainEvent, type }]
  })
  if (typed.length === 0) return
  const endpoints = await endpointsToNotify(tx, [
    ...new Set(typed.map(({ domainEvent }) => domainEvent.team_id)),
  ])
  const wanted = typed.filter(({ domainEvent, type }) =>
    endpoints.some((one) => one.team_id === domainEvent.team_id && wants(one.types, type)),
  )
  for (const [subject, draft] of Object.entries(DRAFTERS)) {
    const own = wanted.filter(({ domainEvent }) => domainEvent.subject === subject)
    if (own.length > 0) await store(tx, await draft(tx, own), endpoints)
  }
}

/** Stores a test message for one endpoint, whatever its types. @returns the ID of its event. */
export async function storeTestWebhook(tx: Tx, teamId: string, endpointId: string, now: Date) {
  const event_id = idNow()
  const data = { endpoint_id: endpointId, detail: 'a test' }
  await storeWebhooks(tx, [
    {
      ...{ team_id: teamId, id: idNow(), endpoint_id: endpointId, event_id, type: TEST_TYPE },
      subject_id: null,
      body: writeBody(TEST_TYPE, now, data),
      enabled: true,
    },
  ])
  return event_id
}
