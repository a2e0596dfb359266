/**
 * Reads, sends and records emails. Many rows are read in a few statements, and a large body only when it is sent.
 * Sending uses no database connection. A row that the provider has accepted isn't sent again, and only deferred
 * recipients are retried. An email that can't be rendered doesn't delay others.
 */

import type { StoredDomain } from '../../db/accounts/domains/domains.sql.ts'
import type { Channel } from '../../db/channels/channel.sql.ts'
import type { Versions } from '../../db/content/templates/versions.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'
import { triedSince } from '../../db/delivery/tried-since.sql.ts'
import { errorWords } from '../../db/errors.ts'
import type { SendCheck } from '../../db/messages/broadcasts/consent.ts'
import type { EmailFile } from '../../db/messages/emails/call.ts'
import { sentContent } from '../../db/messages/emails/content.ts'
import { bodiesOfEmail } from '../../db/messages/emails/emails.sql.ts'
import { domainsToDeliver, emailsToDeliver, type OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import { domainOfRecipient } from '../../db/messages/emails/recipients.ts'
import { returnPath, signedReference } from '../../db/messages/emails/return-path.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { PlainTexts } from '../../db/process/plain-texts.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import { isLarge } from '../../db/validation/files.ts'
import { storableId, storableWords } from '../../db/validation/words.ts'
import type { DeliveryChannel, Outgoing } from '../delivery/channel.ts'
import { ROOM_WAIT_S } from '../delivery/in-flight-buffer.ts'
import { judgePolicy } from '../delivery/retry-policy.ts'
import type {
  EmailDelivery,
  EmailProvider,
  Outcome,
  OutgoingEmail,
  OutgoingFile,
} from '../providers/provider.ts'
import { type EmailAttempt, recordAttempts } from './email-attempts.ts'
import type { EncodedFiles } from './encoded-files.ts'
import { bounceOverdue } from './overdue.ts'
import { recipientsOf, renderEmail } from './render.ts'
import { readSendingDomains } from './sending-domains.ts'
import { NOBODY_SUPPRESSED, type Suppressed, suppressedRecipients } from './suppressed-recipients.ts'
import { createWaits } from './waits.ts'

export type EmailDeps = {
  database: Database
  secrets: Secrets
  versions: Versions
  texts: PlainTexts
  /** null in a worker that delivers no email. Its queue is then not read. */
  email: EmailProvider | null
  files: EncodedFiles
  /** The domain that bounces return to, in ASCII form; null: each email's From domain. */
  return_domain: string | null
  /** True if the names of recipients decide the outcome (suppressed-recipients.ts). */
  simulated_recipients: boolean
  /** For how long an email is attempted that servers defer, in milliseconds. */
  retry_ms: number
  /** After how long a sent email without a report counts as delivered, in milliseconds. */
  sent_counts_ms: number
  log: Log
}

/** How long a retry waits after a lost response, in seconds. A report may still come (DECISIONS: Lost responses). */
const UNKNOWN_WAIT_S = 600

/** How long an item of a batch waits for its team’s bulk email, in seconds. A resume brings it forward. */
const BULK_PAUSED_WAIT_S = 600

type EmailJob = 'deliver-email' | 'deliver-broadcast' | 'deliver-test'

/** Checks, just before sending, emails that can still be withdrawn or delayed. */
type CheckBeforeSend = (rows: readonly OutgoingRow[]) => Promise<ReadonlyMap<string, SendCheck>>

export type Through<T extends boolean> = Omit<EmailDeps, 'email'> & { email: EmailProvider<T> | null }

export function emailChannel<J extends EmailJob, T extends boolean = false>(
  channel: Channel<J>,
  deps: Through<T> & { checkBeforeSend?: CheckBeforeSend },
): DeliveryChannel<J, EmailAttempt> {
  const { email: provider, database } = deps
  if (!provider) throw new Error('this worker has no email provider')
  const { test } = provider
  const waits = createWaits<FetchedJob<J>>(channel.job)
  return {
    channel,
    unknown_wait: UNKNOWN_WAIT_S,
    senders: { one: () => provider.sender() },
    async read(jobs) {
      const refs = jobs.map(({ data }) => data)
      const [rows, domains, sender] = await Promise.all([
        emailsToDeliver(database, refs, test),
        domainsToDeliver(database, refs),
        provider.sender(),
      ])
      const signing = { ours: provider.signs, domains }
      const [since, compose, checks, suppressed] = await Promise.all([
        triedSince(database, { job: channel.job, senderOf: () => sender.key }, rows),
        composer<T>(rows, signing, deps),
        deps.checkBeforeSend?.(rows),
        suppressedRecipients(rows, deps),
      ])
      const byId = new Map(rows.map((row) => [row.id, { ...row, tried_since: since.get(row.id) ?? null }]))
      const room = waitForRoom(deps, provider)
      return new Map(
        jobs.flatMap((job) => {
          const row = byId.get(job.data.email_id)
          const check = checks?.get(job.data.email_id) ?? (checks ? 'gone' : 'go')
          if (!row || check === 'gone') return []
          if (row.bulk_pause !== null) waits.add(job, { kind: 'team' })
          waits.addChecked(job, check)
          const way = { compose, provider, deps, suppressed: suppressed.get(row.id) ?? NOBODY_SUPPRESSED }
          const outgoing = toOutgoing(row, {
            ...way,
            sender,
            own_wait_seconds: row.bulk_pause === null ? room(row) : BULK_PAUSED_WAIT_S,
          })
          if (check === 'go' || 'counted' in check) return [[job, outgoing]]
          const kept =
            'given_up' in check ? { given_up: check.given_up } : { own_wait_seconds: check.wait_seconds }
          return [[job, { ...outgoing, ...kept }]]
        }),
      )
    },
    judge: (attempt, context) => {
      const judged = judgePolicy(attempt.delivery.outcomes, context)
      // No server has deferred an email that wasn't rendered.
      const outcomes = attempt.html === null ? judged : bounceOverdue(judged, context, deps.retry_ms)
      return { ...attempt, delivery: { ...attempt.delivery, outcomes } }
    },
    outcomesOf: ({ delivery }) =>
      [...delivery.outcomes].map(([to, outcome]) => ({ ...outcome, domain: domainOfRecipient(to) })),
    mayGoAfterAll: waits.over,
    record: async (tx, delivered) => recordAttempts(tx, delivered, deps.sent_counts_ms),
  }
}

/** The delivery of an email whose recipients are all suppressed. */
const NOT_SENT: EmailDelivery = { provider_message_id: null, outcomes: new Map() }

type Compose<T extends boolean> = (
  row: OutgoingRow<T>,
  files: readonly OutgoingFile[],
) => Promise<OutgoingEmail<T>>
type Way<T extends boolean> = {
  compose: Compose<T>
  provider: EmailProvider<T>
  deps: Through<T>
  suppressed: Suppressed
}

/** Returns how long each email of a batch has to wait, in seconds, so that no slot waits for memory. */
function waitForRoom(
  { files }: Pick<EmailDeps, 'files'>,
  { bufferedCopies }: Pick<EmailProvider, 'bufferedCopies'>,
): (row: OutgoingRow) => number {
  const hasRoom = files.look()
  return ({ team_id, attachments }) =>
    attachments === null || hasRoom({ team_id, bufferedCopies }, attachments) ? 0 : ROOM_WAIT_S
}

function toOutgoing<T extends boolean>(
  row: OutgoingRow<T>,
  { sender, own_wait_seconds, ...way }: Way<T> & { sender: Sender; own_wait_seconds: number },
): Outgoing<EmailAttempt> {
  const { team_id, id, deferrals, unknowns, tried_since, held_at } = row
  let whole = row
  const { suppressed } = way
  const left = recipientsOf(row).filter((to) => !suppressed.has(to))
  const answered: EmailAttempt = { row, html: null, delivery: NOT_SENT, suppressed }
  return {
    ref: { team_id, id },
    http_request_id: row.http_request_id,
    since: row.since,
    history: { since: tried_since, deferrals, unknowns },
    held_at: held_at === null ? null : new Date(held_at),
    expires_at: row.expires_at === null ? null : new Date(row.expires_at),
    sender,
    cost: left.length,
    ...(left.length === 0 && suppressed.size > 0 ? { answered } : {}),
    own_wait_seconds,
    is_large: isLarge(row.attachments),
    load: row.is_large
      ? async () => {
          const bodies = await bodiesOfEmail(way.deps.database, team_id, id)
          if (bodies) whole = { ...row, ...bodies }
          return bodies !== null
        }
      : undefined,
    send: (cut) => attempt(whole, way, cut),
  }
}

/**
 * Creates the function that turns a row into its message. One query for template versions, and one for domains that
 * weren't read with the rows.
 * @param signing `ours` is true if our keys are to sign the email.
 */
async function composer<T extends boolean>(
  rows: readonly OutgoingRow<T>[],
  { ours, domains: read }: { ours: boolean; domains: readonly StoredDomain[] },
  { database, versions, texts, secrets, return_domain }: Omit<EmailDeps, 'email'>,
): Promise<Compose<T>> {
  const compiled = await versions(
    database,
    rows.flatMap(({ team_id, template_version_id: id }) => (id === null ? [] : [{ team_id, id }])),
  )
  const domains = await readSendingDomains(database, { secrets, ours }, rows, read)
  return async (row, files) => {
    const domain = domains.get(row.domain_id)
    if (domain instanceof Error) throw domain
    const returnPathAt = (domain: string) => returnPath(secrets, row, domain)
    const version = compiled.get(row.template_version_id ?? '')
    return renderEmail(row, version, {
      content: await sentContent(row, version, texts),
      dkim: domain?.dkim ?? null,
      ed25519: domain?.ed25519 ?? null,
      own_return_path: return_domain !== null && domain?.return_path === true,
      return_domain,
      returnPathAt,
      reference: signedReference(secrets, row),
      files,
    })
  }
}

/** Makes one attempt. An email that can't be rendered is deferred, so that it is sent once that is fixed. */
async function attempt<T extends boolean>(
  row: OutgoingRow<T>,
  { compose, provider, deps, suppressed }: Way<T>,
  cut: AbortSignal,
): Promise<EmailAttempt> {
  const recipients = recipientsOf(row).filter((to) => !suppressed.has(to))
  const sent = suppressed.size > 0 ? { ...row, pending_recipients: recipients } : row
  let email: OutgoingEmail<T>
  let held: Held | null = null
  try {
    const place = { team_id: row.team_id, bufferedCopies: provider.bufferedCopies }
    if (row.attachments !== null) held = await holdFiles(deps.files, place, row.attachments, cut)
    email = await compose(sent, held?.files ?? [])
  } catch (error) {
    held?.release(true)
    deps.log.error({ err: error, email_id: row.id }, 'failed to render an email')
    const detail = storableWords(`the email could not be rendered: ${errorWords(error)}`)
    const outcomes = new Map(recipients.map((to): [string, Outcome] => [to, { kind: 'deferred', detail }]))
    return { row, html: null, delivery: { provider_message_id: null, outcomes }, suppressed }
  }
  let isSent = false
  try {
    const delivery = await provider.send(email, cut)
    isSent = [...delivery.outcomes.values()].some(({ kind }) => kind === 'accepted')
    return { row, html: email.html, delivery: storable(delivery), suppressed }
  } finally {
    held?.release(isSent)
  }
}

type Held = { files: readonly OutgoingFile[]; release: (isSent: boolean) => void }

/** Loads the files of an email into memory until they are released. @throws Error if bytes are deleted */
async function holdFiles(
  all: EncodedFiles,
  place: { team_id: string; bufferedCopies: EmailProvider['bufferedCopies'] },
  attachments: readonly EmailFile[],
  cut: AbortSignal,
): Promise<Held> {
  const { encoded, release } = await all.hold(place, attachments, cut)
  const files = attachments.map((file) => ({ ...file, encoded: encoded.get(file.sha256) ?? [] }))
  return { files, release }
}

/** Makes an adapter's result storable. A sent email must be recorded whatever text the provider returned. */
const storable = ({ provider_message_id, outcomes, rejected_return_path }: EmailDelivery): EmailDelivery => ({
  ...(rejected_return_path === undefined
    ? {}
    : { rejected_return_path: storableWords(rejected_return_path) }),
  provider_message_id: storableId(provider_message_id),
  outcomes: new Map(
    [...outcomes].map(([to, outcome]) => [to, { ...outcome, detail: storableWords(outcome.detail) }]),
  ),
})
