/**
 * Accepts emails: checks them, charges each team's quota, stores rows and enqueues delivery, all or nothing. The
 * number of round trips doesn't depend on the number of items: BEGIN and references, locks, replays if there are
 * keys, and rows with charges, jobs and COMMIT. A new template version and a check of the lane need one more each.
 * Attachments need two, because COMMIT is separate then. DECISIONS: Order of errors, Quota.
 */

import { type Account, left, lockAccounts, storageError } from '../../accounts/teams/limits.ts'
import { LimitReached, type LimitState, rateReached, toLimitState } from '../../accounts/teams/rate-limit.ts'
import type { EMAIL_FACTS } from '../../channels/email.ts'
import { readyFiles } from '../../content/files/files.sql.ts'
import type { Versions } from '../../content/templates/versions.ts'
import { RequestError, requestError, Unavailable } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idsAt } from '../../process/ids.ts'
import type { SharedJob } from '../../queue/jobs.ts'
import type { Producer } from '../../queue/producer.ts'
import { formatMailbox, parseMailbox } from '../../validation/address.ts'
import { inOneList } from '../../validation/addressees.ts'
import { isLarge } from '../../validation/files.ts'
import { computeTimes, timeError } from '../../validation/moments.ts'
import { acceptCalls, chargesAndJobs, onlyEnd } from '../accept-calls.ts'
import { findOriginal, readKeys, type StoredKeys } from '../idempotency.ts'
import { TEXTS } from '../texts.ts'
import type { EmailCall, EmailFile, EmailItem, EmailSender, ItemFile } from './call.ts'
import { sizeKb } from './content.ts'
import {
  emailsByKeys,
  insertEmails,
  insertEmailsWithFiles,
  type NewEmail,
  type Stores,
} from './emails.sql.ts'
import {
  domainNotAllowed,
  findReferences,
  type References,
  referenceError,
  resolveVariables,
  soleRecipient,
} from './references.ts'
import type { UnsubscribeLinks } from './unsubscribe-token.ts'

/** The outcome of one item: a new row, the ID of the row with its key, or an error. */
export type EmailOutcome =
  | { kind: 'stored'; row: NewEmail; limit_state: LimitState }
  | { kind: 'replayed'; id: string }
  | { kind: 'refused'; refusal: RequestError }

export type AcceptDeps = {
  tx: Tx
  queue: Pick<Producer, 'storing' | 'reached'>
  versions: Versions
  /** Creates unsubscribe links. Without it, links can only come with the variables. */
  links?: UnsubscribeLinks | null
  /** True if the transaction has no further statement, so that the last one can commit it. */
  last?: boolean
}

/** The calls of one team that are accepted together. Its account is locked. */
type TeamBatch = {
  account: Account
  references: References
  stored: StoredKeys<StoredKey>
  /** The file contents that the team already has, including those of this transaction. */
  ready: Set<string>
  /** The files that new rows bring. */
  newFiles: { team_id: string; id: string }[]
  nextId: () => string
}

type StoredKey = { id: string; domain: string | null }

/** Keeps auto-responders from replying to our own email (RFC 3834). */
const OF_A_NOTICE = { 'Auto-Submitted': 'auto-generated' }

const refused = (refusal: RequestError): EmailOutcome => ({ kind: 'refused', refusal })

function toRow(item: EmailItem, sender: EmailSender, { references, account, nextId }: TeamBatch): NewEmail {
  const template = item.template_id === null ? undefined : references.templates.get(item.template_id)
  const html = template ? null : (item.html ?? '')
  const { team_id } = sender
  const id = nextId()
  const domain_id = references.domains.get(item.from.domain)
  if (domain_id === undefined) throw new Error('an item with an unverified domain was accepted')
  return {
    team_id,
    id,
    domain_id,
    template_id: item.template_id,
    template_version_id: template?.version_id ?? null,
    variables: template ? resolveVariables(item, template.slots, references, { team_id, id }) : null,
    from_address: formatMailbox(item.from),
    ...inOneList(item),
    subject: item.subject,
    html,
    size_kb: html === null ? null : sizeKb(html),
    tags: [...item.tags],
    status: 'queued',
    idempotency_key: item.idempotency_key,
    created_at: account.now.toISOString(),
    requeued_at: null,
    provider_message_id: null,
    broadcast_id: sender.broadcast_id ?? null,
    contact_id: item.contact_id ?? references.contacts.get(soleRecipient(item) ?? '') ?? null,
    body_text: item.text,
    headers: sender.internal ? { ...item.headers, ...OF_A_NOTICE } : item.headers,
    reply_to: item.reply_to,
    http_request_id: sender.http_request_id ?? null,
    pending_recipients: null,
    attachments: toRowFiles(item),
    internal: sender.internal ?? false,
    person: item.person ?? null,
    batch: sender.batch ?? false,
    ...computeTimes(item.when, account.now),
  }
}

/** Returns an item's attachments, with the location of their contents. */
const toFiles = ({ attachments = [] }: EmailItem): Exclude<ItemFile, { missing: string }>[] =>
  attachments.flatMap((file) => ('missing' in file ? [] : [file]))

function toRowFiles(item: EmailItem): EmailFile[] | null {
  const files = toFiles(item).map(({ loaded: _loaded, ...file }) => file)
  return files.length === 0 ? null : files
}

async function openTeamBatches(
  { tx, versions, links }: Pick<AcceptDeps, 'tx' | 'versions' | 'links'>,
  calls: readonly EmailCall[],
  lock: 'wait' | 'skip',
): Promise<Map<string, TeamBatch>> {
  const references = await findReferences({ tx, versions, links: links ?? null }, calls)
  const teams = calls.map(({ sender }) => sender.team_id)
  const accounts = await lockAccounts(tx, teams, lock)
  const batches = new Map<string, TeamBatch>()
  for (const [teamId, account] of accounts) {
    const own = references.get(teamId)
    if (!own) continue
    const fresh = { stored: new Map(), ready: new Set<string>(), newFiles: [], nextId: idsAt(account.now) }
    batches.set(teamId, { account, references: own, ...fresh })
  }
  const named = calls.flatMap(({ sender: { team_id }, items }) =>
    items.map(({ idempotency_key: key }) => ({ team_id, key })),
  )
  await readKeys(batches, named, {
    read: (keys) => emailsByKeys(tx, keys),
    keyOf: ({ id, from_address }) => ({ id, domain: parseMailbox(from_address)?.domain ?? null }),
  })
  // A batch may contain one file a hundred times.
  const contents = new Map(
    calls.flatMap(({ sender: { team_id }, items }) =>
      items.flatMap(toFiles).map(({ sha256 }) => [`${team_id}/${sha256}`, { team_id, sha256 }]),
    ),
  )
  for (const { team_id, sha256 } of contents.size === 0 ? [] : await readyFiles(tx, [...contents.values()]))
    batches.get(team_id)?.ready.add(sha256)
  return batches
}

function findReplay(item: EmailItem, sender: EmailSender, { stored }: TeamBatch): EmailOutcome | null {
  const original = findOriginal(item, stored)
  if (!original) return null
  if (sender.domain !== null && sender.domain !== original.domain)
    return refused(domainNotAllowed(item, sender))
  return { kind: 'replayed', id: original.id }
}

/** Returns the items that would create rows, each new key once. @param refusals the error of each item, if any. */
function newItems(items: readonly EmailItem[], refusals: readonly (RequestError | null)[], batch: TeamBatch) {
  const taken = new Set<string>()
  return items.filter(({ idempotency_key: key }, index) => {
    if (refusals[index] || (key !== null && (taken.has(key) || batch.stored.has(key)))) return false
    if (key !== null) taken.add(key)
    return true
  })
}

function bytesAdded(items: readonly EmailItem[], { ready }: TeamBatch): number {
  const added = new Map(items.flatMap(toFiles).map(({ sha256, size }) => [sha256, size]))
  return [...added].reduce((sum, [sha256, size]) => sum + (ready.has(sha256) ? 0 : size), 0)
}

/** Adds the contents that the team doesn't have, and charges for them. */
function takeFiles(item: EmailItem, team_id: string, { account, ready, newFiles }: TeamBatch): void {
  for (const { sha256, size, loaded } of toFiles(item)) {
    if (ready.has(sha256)) continue
    // It existed a moment ago, so its row has been deleted since.
    if (loaded === null) throw new Unavailable('conflict', TEXTS.attachmentDeleted, 1)
    newFiles.push({ team_id, id: loaded })
    ready.add(sha256)
    account.used.storage += size
  }
}

/** Creates the row of an item if the rate limit allows it. */
function store(item: EmailItem, sender: EmailSender, batch: TeamBatch): EmailOutcome {
  const { account } = batch
  // The send rate only applies to API calls. Broadcasts are rate-limited during delivery.
  if (sender.broadcast_id === undefined && sender.rated !== false) {
    if (account.bucket.tokens < 1) return refused(rateReached(account))
    account.bucket.tokens -= 1
  }
  account.used.emails += 1
  takeFiles(item, sender.team_id, batch)
  const row = toRow(item, sender, batch)
  if (item.idempotency_key !== null)
    batch.stored.set(item.idempotency_key, { id: row.id, domain: item.from.domain })
  return { kind: 'stored', row, limit_state: toLimitState(account) }
}

/**
 * Accepts a call's items in order. A repeated key is a replay, even if the later item is invalid. An error rejects
 * all items of the call.
 */
function take({ sender, items }: EmailCall, batch: TeamBatch): EmailOutcome[] | RequestError {
  const refusals = items.map((item) =>
    findReplay(item, sender, batch)
      ? null
      : (timeError(item, batch.account.now) ?? referenceError(item, sender, batch.references)),
  )
  const { limits, used } = batch.account
  const wanted = newItems(items, refusals, batch)
  if (wanted.length > left(limits.emails, used.emails)) {
    const limit = limits.emails?.toLocaleString('en') ?? 'no'
    return new LimitReached(batch.account, requestError('quota_exceeded', TEXTS.emailQuota, { limit }))
  }
  const storageFull = storageError(batch.account, bytesAdded(wanted, batch))
  if (storageFull) return new LimitReached(batch.account, storageFull)
  return items.map((item, index) => {
    const refusal = refusals[index]
    return findReplay(item, sender, batch) ?? (refusal ? refused(refusal) : store(item, sender, batch))
  })
}

/** Returns the lane of a call (DECISIONS: Lanes). */
const laneFor = ({ broadcast_id, batch }: EmailSender): (typeof EMAIL_FACTS.lines)[number] =>
  broadcast_id !== undefined ? 'broadcast' : batch ? 'email_batch' : 'email'

/** Adds `large` to the job of a large email. The simulator doesn't need it. */
const toPayload = (job: SharedJob, { attachments }: NewEmail) => ({
  ...(job !== 'deliver-test' && isLarge(attachments) ? { large: true } : {}),
})

/** Stores rows with their charges, jobs and new file contents, and records which emails need the contents. */
async function insert(
  tx: Tx,
  rows: readonly NewEmail[],
  { newFiles, ...stores }: Stores & { newFiles: TeamBatch['newFiles'] },
): Promise<void> {
  const needs = rows.flatMap(({ team_id, id: email_id, attachments }) =>
    (attachments ?? []).map(({ sha256 }) => ({ team_id, email_id, sha256 })),
  )
  if (needs.length === 0) return insertEmails(tx, rows, stores)
  const { charge, jobs, due } = stores
  const stored = await insertEmailsWithFiles(tx, rows, { charge, jobs, files: { newFiles, needs } })
  if (stored.jobs !== due) throw new Error(`stored ${due} emails that are due but ${stored.jobs} jobs`)
  if (stored.published !== newFiles.length) throw new Error('the bytes of an attachment are not there')
}

/**
 * Accepts calls of any teams in one transaction, in order, and enqueues the delivery of each new row.
 * @param lock `skip` skips the calls of teams that another transaction has locked.
 * @returns the outcomes of each call's items, in order. An error if its new rows don't all fit the quota, and then
 * none of the call is stored. Null if it was skipped.
 */
export async function acceptEmailCalls(deps: AcceptDeps, calls: readonly EmailCall[], lock: 'wait' | 'skip') {
  const batches = await openTeamBatches(deps, calls, lock)
  const named = calls.map((call) => ({ ...call, team_id: call.sender.team_id }))
  return acceptCalls(named, batches, {
    take: (call, batch) => {
      const outcomes = take(call, batch)
      if (outcomes instanceof RequestError) return outcomes
      const { team_id, sender } = call
      const rows = outcomes.flatMap((one) => (one.kind === 'stored' ? [one.row] : []))
      return { outcomes, made: rows.map((row) => ({ team_id, line: laneFor(sender), messages: [row] })) }
    },
    commit: async (made) => {
      const parts = await chargesAndJobs(deps, made, batches, { also: toPayload, numberOf: () => null })
      const newFiles = [...batches.values()].flatMap((batch) => batch.newFiles)
      const rows = made.flatMap(({ messages }) => messages)
      await insert(deps.tx, rows, { ...parts, newFiles, last: deps.last ?? false })
    },
  })
}

/** Returns the IDs of the stored or replayed emails of a call. @throws RequestError the first of its items'. */
export const idsOf = (outcomes: readonly EmailOutcome[]): string[] =>
  outcomes.map((outcome) => {
    if (outcome.kind === 'refused') throw outcome.refusal
    return outcome.kind === 'stored' ? outcome.row.id : outcome.id
  })

/** Accepts one call. @throws RequestError quota_exceeded if its new rows don't all fit the quota. */
export async function acceptEmails(deps: AcceptDeps, sender: EmailSender, items: readonly EmailItem[]) {
  return onlyEnd(await acceptEmailCalls(deps, [{ sender, items }], 'wait'))
}
