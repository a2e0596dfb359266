/**
 * POST /v1/emails and /v1/emails/batch: transactional email. This module does the checks that need only the
 * body. db/messages/emails/accept.ts does the rest, for one item or a hundred.
 */
import { LimitReached } from '../../db/accounts/teams/rate-limit.ts'
import { RequestError, resultOrError, Unavailable } from '../../db/errors.ts'
import { acceptEmails, type EmailOutcome } from '../../db/messages/emails/accept.ts'
import type { EmailItem, EmailSender } from '../../db/messages/emails/call.ts'
import { emailById } from '../../db/messages/emails/emails.sql.ts'
import { parseReplyTo, parseSender } from '../../db/messages/emails/item.ts'
import { formatMailbox, parseMailbox } from '../../db/validation/address.ts'
import { whenOf } from '../../db/validation/fields.ts'
import { headersFault, type Reserved, reservedFault } from '../../db/validation/headers.ts'
import { keyOnly, keyOrSession, type Principal } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { rateHeaders } from '../http/rate.ts'
import { countSends } from '../sends/count.ts'
import { ABOUT, aboutScheduled } from './about.ts'
import { fileMaker, withContents } from './attached.ts'
import { acceptEach, type BatchItem, batchAnswer } from './batch.ts'
import { teamRoute, type V1Deps, type V1Route } from './deps.ts'
import { type EmailDraft, emailBody, emailsBody } from './email-body.ts'
import { withIdempotencyKey } from './idempotency-key.ts'
import { presentEmail } from './present.ts'
import { scheduledRoutes } from './scheduled.ts'
import { TEXTS } from './texts.ts'

/** Formats valid recipients like From. */
const asStored = (recipients: readonly string[] = []): string[] =>
  recipients.flatMap((recipient) => parseMailbox(recipient) ?? []).map(formatMailbox)

/**
 * Builds an item without its attachments. @param reserved the headers that the operator reserves
 * (RESERVED_HEADER_PREFIXES). @throws RequestError invalid_from, invalid_headers, invalid_reply_to, in this
 * order
 */
function buildItem({ path, send }: EmailDraft, reserved: Reserved): EmailItem {
  const from = parseSender(send.from, path)
  const { headers = null } = send
  const fault = headers && (headersFault(headers) ?? reservedFault(headers, reserved))
  if (fault !== null) throw new RequestError('invalid_headers', { ...fault, field: path + fault.field })
  return {
    path,
    from,
    to: asStored(send.to),
    cc: asStored(send.cc),
    bcc: asStored(send.bcc),
    subject: send.subject,
    html: send.html ?? null,
    template_id: send.template_id?.toLowerCase() ?? null,
    // Only templates have variables.
    variables: send.template_id === undefined ? null : (send.variables ?? null),
    // An empty text doesn't replace the template's.
    text: send.text || null,
    headers,
    reply_to: parseReplyTo(send.reply_to, path),
    tags: send.tags ?? [],
    idempotency_key: send.idempotency_key ?? null,
    ...whenOf(send),
  }
}

const toSender = ({ team_id, domain }: Principal, http_request_id: string): EmailSender => {
  return { team_id, domain, http_request_id }
}

const attaching = ({ database: tx, attachments: limits }: V1Deps, { team_id }: Principal) => ({
  tx,
  teamId: team_id,
  limits,
})

/**
 * Reads the uploads of drafts. @returns a function that builds the item of a draft, starting with its
 * attachments
 * @throws RequestError bad_request, payload_too_large, invalid_from, invalid_headers, invalid_reply_to from
 * that function
 */
async function itemMaker(deps: V1Deps, principal: Principal, drafts: readonly EmailDraft[]) {
  const makeFiles = await fileMaker(attaching(deps, principal), drafts)
  return (draft: EmailDraft): EmailItem => {
    const attachments = makeFiles(draft)
    const item = buildItem(draft, deps.reservedHeaders)
    return { ...item, ...(attachments.length > 0 ? { attachments } : {}) }
  }
}

/** Runs `accept` while the contents of the items' attachments, if any, are stored. */
function withFiles<T>(
  deps: V1Deps,
  principal: Principal,
  sends: { drafts: readonly EmailDraft[]; items: readonly EmailItem[] },
  accept: (items: readonly EmailItem[]) => Promise<T>,
): Promise<T> {
  const bare = sends.items.every(({ attachments }) => attachments === undefined)
  return bare ? accept(sends.items) : withContents(attaching(deps, principal), sends, accept)
}

async function acceptBatch(deps: V1Deps, sender: EmailSender, items: readonly EmailItem[]) {
  const { database, queue, versions, links } = deps
  const outcomes = await database.transaction((tx) =>
    acceptEmails({ tx, queue, versions, links, last: true }, sender, items),
  )
  return countSends(deps.metrics, 'email', outcomes)
}

async function storedRow({ database }: V1Deps, principal: Principal, outcome: EmailOutcome) {
  if (outcome.kind === 'refused') throw outcome.refusal
  if (outcome.kind === 'stored') return outcome.row
  const row = await emailById(database, principal.team_id, outcome.id)
  // Deleted between the replay and this read. After the deletion the key can be used again.
  if (!row) throw new Unavailable('conflict', TEXTS.emailDeleting, 1)
  return row
}

/** Returns the rate limit headers of the last item that used the bucket, or none. */
function buildRateHeaders(outcomes: readonly EmailOutcome[]): Record<string, string> {
  const states = outcomes.flatMap((outcome) => {
    if (outcome.kind === 'stored') return [outcome.limit_state]
    return outcome.kind === 'refused' && outcome.refusal instanceof LimitReached
      ? [outcome.refusal.limit_state]
      : []
  })
  const last = states.at(-1)
  return last ? rateHeaders(last) : {}
}

const toBatchItem = (outcome: EmailOutcome): BatchItem => {
  if (outcome.kind === 'refused') return outcome.refusal
  return outcome.kind === 'stored' ? outcome.row.id : outcome.id
}

export const emailRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/emails',
    about: ABOUT.sendEmail,
    access: keyOrSession('emails:send'),
    body: emailBody,
    async handle({ id, body, headers, principal }, deps) {
      const drafts = [{ ...body, send: withIdempotencyKey(body.send, headers) }]
      const items = drafts.map(await itemMaker(deps, principal, drafts))
      const accept = (ready: readonly EmailItem[]) =>
        deps.accepts.email({ sender: toSender(principal, id), items: ready })
      const stored = await withFiles(deps, principal, { drafts, items }, accept)
      const [outcome] = countSends(deps.metrics, 'email', stored)
      if (!outcome) throw new Error('one item must have one outcome')
      const row = await storedRow(deps, principal, outcome)
      return {
        status: outcome.kind === 'stored' ? 201 : 200,
        body: await presentEmail(deps, row),
        headers: buildRateHeaders([outcome]),
        trace: tracing([row.id]),
      }
    },
  }),
  teamRoute({
    method: 'POST',
    path: '/v1/emails/batch',
    about: ABOUT.sendEmails,
    access: keyOnly('emails:send'),
    heavy: true,
    body: emailsBody,
    async handle({ id, body, principal }, deps) {
      const drafts = body.flatMap((each) => (each instanceof RequestError ? [] : [each]))
      const makeItem = await itemMaker(deps, principal, drafts)
      const checked = body.map((each) =>
        each instanceof RequestError ? each : resultOrError(() => makeItem(each)),
      )
      let headers = {}
      const accept = async (valid: readonly EmailItem[]) => {
        const outcomes = await withFiles(deps, principal, { drafts, items: valid }, (ready) =>
          acceptBatch(deps, { ...toSender(principal, id), batch: true }, ready),
        )
        headers = buildRateHeaders(outcomes)
        return outcomes
      }
      const items = await acceptEach(checked, accept, toBatchItem)
      return { ...batchAnswer(items, deps.metrics), headers }
    },
  }),
  ...scheduledRoutes({
    channel: 'email',
    path: '/v1/emails',
    access: keyOrSession('emails:send'),
    about: aboutScheduled({ name: 'Email', group: 'Emails', noun: 'email', article: 'an' }, [
      'not_found',
      'domain_not_allowed',
    ]),
  }),
]
