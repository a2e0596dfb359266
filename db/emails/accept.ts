/**
 * Accepts emails for a team: checks them, charges the allowance, stores rows and enqueues delivery, all or nothing.
 * Promises: one path for a single send and a batch, in the same seven round trips (begin, references, lock, replays,
 * rows with their charge, jobs, commit; one more for template versions that this process has not met), whatever the
 * number of items; the quota is never exceeded, a key never gets
 * a second row. Never talks to a provider. Contract §4.2, §8; decisions: Email, Plans.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { type Account, chargeOf, left, lockAccount, secondsUntilToken } from '../teams/limits.ts'
import type { CompiledVersion, Versions } from '../templates/versions.ts'
import { addressIdentity, formatMailbox, type Mailbox, parseMailbox } from '../text/address.ts'
import { idsAt } from '../text/ids.ts'
import { missingSlots } from '../text/slots.ts'
import { LARGEST_PART } from '../text/strings.ts'
import { partTooLarge, sizeKb } from './content.ts'
import { type EmailRow, emailReferences, emailsByKeys, insertEmails } from './emails.sql.ts'

/** Who sends: the team, and the domain its key is bound to (null when it is not). */
export type EmailSender = { team_id: string; domain: string | null }

/** An email whose fields are valid by themselves. `html` counts only without a template. */
export type EmailItem = {
  /** Where it lies in the call, such as `emails[3].`, for messages that name its fields; '' for a single send. */
  path: string
  from: Mailbox
  to: readonly string[]
  subject: string
  html: string | null
  template_id: string | null
  variables: Readonly<Record<string, string>> | null
  text: string | null
  headers: Record<string, string> | null
  reply_to: string
  tags: readonly string[]
  idempotency_key: string | null
}

/** What became of one item: a new row, the id of the row its key was stored under, or a refusal. */
export type EmailOutcome =
  | { kind: 'stored'; row: EmailRow }
  | { kind: 'replayed'; id: string }
  | { kind: 'refused'; refusal: Refusal }

type Template = { version_id: string; slots: readonly string[]; compiled: CompiledVersion | undefined }

type References = {
  domains: ReadonlyMap<string, string>
  templates: ReadonlyMap<string, Template>
  contacts: ReadonlyMap<string, string>
}

const refused = (refusal: Refusal): EmailOutcome => ({ kind: 'refused', refusal })

const soleRecipient = (item: EmailItem): string | null => {
  const [only, ...others] = item.to
  return only !== undefined && others.length === 0 ? addressIdentity(only) : null
}

async function findReferences(
  { tx, versions }: { tx: Tx; versions: Versions },
  teamId: string,
  items: readonly EmailItem[],
): Promise<References> {
  const distinct = (values: readonly (string | null)[]) =>
    [...new Set(values)].filter((value) => value !== null)
  const rows = await emailReferences(tx, teamId, {
    domains: distinct(items.map((item) => item.from.domain)),
    templates: distinct(items.map((item) => item.template_id)),
    contacts: distinct(items.map(soleRecipient)),
  })
  const of = (kind: string) => rows.filter((row) => row.kind === kind)
  const known = of('template').map((row) => ({
    key: row.key,
    version_id: row.version_id ?? '',
    slots: row.slots ?? [],
  }))
  const compiled = await versions(
    tx,
    known.map(({ version_id: id }) => ({ team_id: teamId, id })),
  )
  return {
    domains: new Map(of('domain').map((row) => [row.key, row.id])),
    templates: new Map(
      known.map(({ key, ...template }) => [
        key,
        { ...template, compiled: compiled.get(template.version_id) },
      ]),
    ),
    contacts: new Map(of('contact').map((row) => [row.key, row.id])),
  }
}

/** Why the item can't be sent, in the order that decisions.md gives; null when it can. */
function refusalOf(item: EmailItem, sender: EmailSender, { domains, templates }: References): Refusal | null {
  const { path } = item
  const { domain } = item.from
  if (!domains.has(domain)) {
    return new Refusal(
      'from_domain_not_verified',
      `${path}from: ${domain} is not a verified domain of this team`,
    )
  }
  if (sender.domain !== null && sender.domain !== domain) {
    return new Refusal('domain_not_allowed', `${item.path}from: this key may send from ${sender.domain} only`)
  }
  if (item.template_id === null) return null
  const template = templates.get(item.template_id)
  if (!template)
    return new Refusal('not_found', `${path}template_id: there is no template ${item.template_id}`)
  const missing = missingSlots(template.slots, item.variables)
  if (missing.length > 0) {
    return new Refusal(
      'bad_request',
      `${path}variables must fill the template's slots: ${missing.join(', ')} missing`,
    )
  }
  const large = template.compiled && partTooLarge(template.compiled, item.variables ?? {}, item.text)
  if (!large) return null
  return new Refusal('bad_request', `${path}variables must leave the ${large} at most ${LARGEST_PART} bytes`)
}

/** Only what the template takes: a surplus variable is ignored, and not stored. */
function slotValues(slots: readonly string[], variables: Readonly<Record<string, string>> | null) {
  return Object.fromEntries(slots.map((slot) => [slot, variables?.[slot] ?? '']))
}

function rowOf(
  item: EmailItem,
  sender: EmailSender,
  references: References,
  { id, at }: { id: string; at: Date },
): EmailRow {
  const template = item.template_id === null ? undefined : references.templates.get(item.template_id)
  const html = template ? null : (item.html ?? '')
  return {
    team_id: sender.team_id,
    id,
    domain_id: references.domains.get(item.from.domain) ?? '',
    template_id: item.template_id,
    template_version_id: template?.version_id ?? null,
    variables: template ? slotValues(template.slots, item.variables) : null,
    from_address: formatMailbox(item.from),
    to_emails: [...item.to],
    subject: item.subject,
    html,
    size_kb: html === null ? null : sizeKb(html),
    tags: [...item.tags],
    status: 'queued',
    idempotency_key: item.idempotency_key,
    created_at: at.toISOString(),
    requeued_at: null,
    provider_message_id: null,
    broadcast_id: null,
    contact_id: references.contacts.get(soleRecipient(item) ?? '') ?? null,
    body_text: item.text,
    headers: item.headers,
    reply_to: item.reply_to,
    pending_recipients: null,
  }
}

type StoredKey = { id: string; domain: string | null }

async function storedKeys(
  tx: Tx,
  teamId: string,
  items: readonly EmailItem[],
): Promise<Map<string, StoredKey>> {
  const keys = [...new Set(items.map((item) => item.idempotency_key))].filter((key) => key !== null)
  if (keys.length === 0) return new Map()
  const rows = await emailsByKeys(tx, teamId, keys)
  return new Map(
    rows.map((row) => [
      row.idempotency_key,
      { id: row.id, domain: parseMailbox(row.from_address)?.domain ?? null },
    ]),
  )
}

function replayOf(
  item: EmailItem,
  sender: EmailSender,
  stored: ReadonlyMap<string, StoredKey>,
): EmailOutcome | null {
  const original = item.idempotency_key === null ? undefined : stored.get(item.idempotency_key)
  if (!original) return null
  if (sender.domain !== null && sender.domain !== original.domain) {
    return refused(
      new Refusal('domain_not_allowed', `${item.path}from: this key may send from ${sender.domain} only`),
    )
  }
  return { kind: 'replayed', id: original.id }
}

/** How many rows the items would make: each new idempotency key once (decisions: batch quota). */
function rowsWanted(items: readonly EmailItem[], settled: readonly (EmailOutcome | null)[]): number {
  const fresh = items.filter((_, index) => settled[index] === null)
  const keys = fresh.map((item) => item.idempotency_key)
  return keys.filter((key) => key === null).length + new Set(keys.filter((key) => key !== null)).size
}

/** Gives each item left a row while tokens last, in order; a key met again gets the row it has just made. */
function store(
  items: readonly EmailItem[],
  settled: readonly (EmailOutcome | null)[],
  account: Account,
  toRow: (item: EmailItem) => EmailRow,
): EmailOutcome[] {
  const made = new Map<string, string>()
  return items.map((item, index) => {
    const known = settled[index]
    if (known) return known
    const twin = item.idempotency_key === null ? undefined : made.get(item.idempotency_key)
    if (twin) return { kind: 'replayed', id: twin }
    if (account.bucket.tokens < 1) {
      const wait = secondsUntilToken(account)
      return refused(new Refusal('rate_limited', `the send rate is exceeded; retry in ${wait} s`, wait))
    }
    account.bucket.tokens -= 1
    account.used.emails += 1
    const row = toRow(item)
    if (row.idempotency_key !== null) made.set(row.idempotency_key, row.id)
    return { kind: 'stored', row }
  })
}

/**
 * Accepts items in order; each has its own outcome. Enqueues `deliver-email` for each new row.
 * @throws Refusal quota_exceeded when the new rows would not all fit the allowance: then nothing is stored.
 */
export async function acceptEmails(
  { tx, queue, versions }: { tx: Tx; queue: Pick<Producer, 'enqueue'>; versions: Versions },
  sender: EmailSender,
  items: readonly EmailItem[],
): Promise<EmailOutcome[]> {
  const teamId = sender.team_id
  const references = await findReferences({ tx, versions }, teamId, items)
  const account = await lockAccount(tx, teamId)
  const stored = await storedKeys(tx, teamId, items)
  const settled = items.map((item): EmailOutcome | null => {
    const replay = replayOf(item, sender, stored)
    if (replay) return replay
    const refusal = refusalOf(item, sender, references)
    return refusal && refused(refusal)
  })
  if (rowsWanted(items, settled) > left(account.limits.emails, account.used.emails)) {
    throw new Refusal(
      'quota_exceeded',
      `the allowance of ${account.limits.emails} emails for this period is reached`,
    )
  }
  const at = account.now
  const nextId = idsAt(at)
  const outcomes = store(items, settled, account, (item) =>
    rowOf(item, sender, references, { id: nextId(), at }),
  )
  const rows = outcomes.flatMap((outcome) => (outcome.kind === 'stored' ? [outcome.row] : []))
  if (rows.length === 0) return outcomes
  await insertEmails(tx, rows, chargeOf(teamId, account))
  const jobs = await queue.enqueue(
    tx,
    'deliver-email',
    rows.map((row) => ({ team_id: teamId, email_id: row.id })),
  )
  if (jobs !== rows.length) throw new Error(`stored ${rows.length} emails but ${jobs} jobs`)
  return outcomes
}
