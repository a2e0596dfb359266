/** The page of an email: status, timeline, recipients, why it waits, content and actions. */

import type { Cause } from '../../../db/audience/contacts/effect.ts'
import { contactsWithIdentities, type RecipientContact } from '../../../db/audience/contacts/search.sql.ts'
import { templateName } from '../../../db/content/templates/templates.sql.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { RequestError } from '../../../db/errors.ts'
import { findEnds } from '../../../db/messages/emails/ended.sql.ts'
import { linkedEmails } from '../../../db/messages/emails/links.ts'
import { everyone } from '../../../db/messages/emails/recipients.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import type { LinkKind } from '../../../db/messages/emails/status.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { ERASED, recipientIdentity } from '../../../db/validation/addressees.ts'
import { byteWords, type Cell, formatAge, status, text } from '../components/cell.ts'
import type { Actions, Alert, Section } from '../components/section.ts'
import { emailSentence, isAddressRejected } from '../components/sentence.ts'
import { buildMoments, recipientOutcomes, waitingAlerts } from '../components/timeline.ts'
import { auditRead } from '../server/action.ts'
import { buildAlerts, buildFacts, buildTable, button, compact, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { framed, frameHeaders } from '../server/guard.ts'
import { backTo } from '../server/list.ts'
import { type PageAnswer, raw, show, type TeamPage, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { isManual } from './contact-suppression.ts'
import { orDeleted } from './deleted-message.ts'
import { emailActs, resendForm } from './email-actions.ts'
import { content } from './email-content.ts'
import { fileAnswer, fileAt, filesTable, withPictures } from './email-files.ts'
import {
  emailAndState,
  emailPath,
  isWithdrawn,
  loadEmail,
  noteOpened,
  type Suppressed,
  suppressedRecipients,
  toBeSkipped,
} from './email-place.ts'
import { buildIds, closedContent, messageTimes, whatHappened, whyItWaits } from './message-sections.ts'
import { requeueForms } from './requeue.ts'
import { cancelForm, moveForm, shownState } from './scheduled.ts'

/** An email to show, and the request. `emptied` is true if its content was deleted. */
type EmailView = { email: ShownEmail; emptied: boolean; request: TeamRequest<'id'>; deps: PageDeps }

const buildContent = ({ email, state, sent }: EmailState, request: TeamRequest<'id'>, deps: PageDeps) =>
  content({
    ...{ email, emptied: state?.emptied === true, request },
    sentText: async () => (await sent(deps.texts)).text,
  })
type EmailState = Awaited<ReturnType<typeof emailAndState>>

/** Builds the right column: its addresses, which come first on phones, other facts, and its IDs collapsed. */
function facts({ email, request: { team, now } }: EmailView, contacts: Contacts, template: Cell | null) {
  const [only = '', ...others] = everyone(email)
  const known = contacts.get(recipientIdentity(only))
  const address = known?.email ?? parseMailbox(only)?.address
  const toOne =
    others.length > 0 || address === undefined || address === ERASED
      ? {}
      : { href: teamPath(team, 'contacts', address), detail: known ? undefined : 'not a contact' }
  const parties = {
    From: text(email.from_address),
    To: text(email.to_emails.join(', '), toOne),
    Cc: email.cc_emails && text(email.cc_emails.join(', ')),
    Bcc: email.bcc_emails && text(email.bcc_emails.join(', ')),
    'Reply to': email.reply_to !== '' && text(email.reply_to),
  }
  const own = {
    ...messageTimes(email, now),
    Template: template,
    Tags: email.tags.length > 0 && text(email.tags.join(', ')),
    Size: text(email.size_kb < 1 ? byteWords(Math.round(email.size_kb * 1024)) : `${email.size_kb} kB`),
  }
  return [buildFacts(parties, { id: 'first' }), buildFacts(own, { id: 'facts' }), buildIds(email)]
}

type Contacts = ReadonlyMap<string, RecipientContact>

async function loadContacts({ email, request, deps }: EmailView): Promise<Contacts> {
  const identities = everyone(email).map(recipientIdentity)
  const contacts = await contactsWithIdentities(deps.database, request.team.id, identities)
  return new Map(contacts.map((contact) => [contact.identity, contact]))
}

async function buildTemplateCell({ email, request: { team }, deps }: EmailView): Promise<Cell | null> {
  const { template_id: id } = email
  if (id === null) return null
  const name = await templateName(deps.database, team.id, id)
  return name === null ? text('deleted') : text(name, { href: teamPath(team, 'templates', id) })
}

const CAUSE_WORDS: Record<Cause, string> = {
  bounce: 'An email to it bounced',
  complaint: 'The recipient reported an email as spam',
  soft_bounces: 'Several emails to it bounced in a row',
  manual: 'It was added manually',
}

/** Describes a queued email whose recipients will all be skipped. Undefined for other emails. */
const skipSentence = (email: ShownEmail, skipped: Suppressed): string | undefined => {
  const all = everyone(email)
  if (skipped.length === 0 || skipped.length < all.length) return undefined
  return `It will be skipped, because ${all.length === 1 ? 'the address is' : 'all its addresses are'} suppressed.`
}

/** Lists suppressed recipients, with links to their contacts, and responses that the timeline doesn't have. */
function buildSuppressed(
  { email, request: { team } }: EmailView,
  suppressed: Suppressed,
  skipped: Suppressed,
): Section[] {
  const alerts = suppressed.map(
    ({ identity, email: address, response, ...stored }): Alert => ({
      tone: 'warn',
      title: `${address} is suppressed${skipped.some((one) => one.identity === identity) ? ' and will be skipped' : ''}`,
      text: [
        `${CAUSE_WORDS[isManual(stored) ? 'manual' : stored.cause]}.`,
        email.events.some(({ detail }) => detail === response) ? '' : response,
      ]
        .join(' ')
        .trim(),
      link: { href: teamPath(team, 'contacts', address), label: 'Show the suppression' },
    }),
  )
  return buildAlerts(alerts, { id: 'alerts-suppressed' })
}

/** True if an email bounced because of its address, so that sending it again to the same one is pointless. */
const isAddressDead = ({ email }: EmailView, suppressed: Suppressed): boolean =>
  email.status === 'bounced' &&
  (suppressed.length > 0 ||
    email.events.some(({ kind, detail }) => kind === 'bounced' && isAddressRejected(detail)))

function recipients(email: ShownEmail, contacts: Contacts, request: TeamRequest): Section {
  const { team } = request
  const addressCell = (recipient: string): Cell => {
    const contact = contacts.get(recipientIdentity(recipient))
    const { address, name } = parseMailbox(recipient) ?? { address: recipient, name: null }
    return text(address, {
      href: address === ERASED ? undefined : teamPath(team, 'contacts', contact?.email ?? address),
      detail: name ?? undefined,
    })
  }
  const hasCopies = everyone(email).length > email.to_emails.length
  return buildTable(
    recipientOutcomes(email, request),
    ({ address, as, outcome, words }) => ({
      As: hasCopies && text(as),
      Address: addressCell(address),
      Outcome: status(outcome),
      'Server response': text(words),
    }),
    { title: 'Recipients', empty: '', main: 'Address', wrap: ['Address', 'Server response'] },
  )
}

type RequeueWay = Awaited<ReturnType<typeof requeueWay>>

function takenNote({ email, emptied, request }: EmailView, way: RequeueWay): Section[] {
  if (emptied || email.status !== 'bounced' || request.team.role === 'viewer' || way !== null) return []
  const title = 'A provider has already accepted this email, so it isn’t sent again'
  return buildAlerts([{ tone: 'plain', title, text: 'Fix the cause, then send a new email.' }], {
    id: 'taken',
  })
}

function actions(looked: EmailView, way: RequeueWay, suppressed: Suppressed): Actions {
  const { email, emptied, request } = looked
  const { team } = request
  if (team.role === 'viewer') return {}
  const again = requeueForms(
    isWithdrawn(email, suppressed) ? null : way,
    email.waiting?.state,
    emailPath(request, 'requeue'),
  )
  return {
    forms: compact([
      // The corrected address is then the main action.
      isAddressDead(looked, suppressed)
        ? again.map((form) => ({ ...form, tone: 'quiet' as const, menu: suppressed.length > 0 }))
        : again,
      cancelForm(email, 'email', emailPath(request)),
      !email.internal &&
        !emptied &&
        button(emailPath(request, 'copy'), 'Send a copy to me', { tone: 'quiet', menu: true }),
      team.role === 'owner' && button(emailPath(request, 'delete'), 'Delete email', { tone: 'danger' }),
    ]),
  }
}

const LINKED: Record<LinkKind, { title: string; label: string }> = {
  resent: { title: 'Resent to', label: 'The new email' },
  copied: { title: 'Copied to', label: 'The copy' },
  resent_from: { title: 'Resent version of an email to', label: 'The original' },
  copied_from: { title: 'A copy of an email to', label: 'The original' },
}

/** Lists emails that were resent or copied from this one, and its original. */
async function linked({ email, request: { team, now }, deps }: EmailView): Promise<Section[]> {
  const links = await linkedEmails(deps.database, email)
  const alerts = links.map(({ kind, id, by, time: at, to_emails }): Alert => {
    const { title, label } = LINKED[kind]
    return {
      tone: 'busy',
      title: `${title} ${to_emails?.join(', ') ?? 'an email that was deleted'}`,
      text: `By ${by}, ${formatAge(at, now)}.`,
      link: to_emails ? { href: teamPath(team, 'emails', id), label } : undefined,
    }
  })
  return buildAlerts(alerts, { title: 'Related emails' })
}

const DELETED = { noun: 'email', path: 'emails', list: 'Emails', removal: 'email.delete' }

async function showPage(request: TeamRequest<'id'>, deps: PageDeps): Promise<PageAnswer> {
  const { team } = request
  const found = await emailAndState(request, deps)
  const { email, state } = found
  const looked = { email, emptied: state?.emptied === true, request, deps }
  const contacts = await loadContacts(looked)
  const edits = team.role !== 'viewer'
  const way = edits ? requeueWay(state) : null
  const suppressed = await suppressedRecipients(email, request, deps)
  const skipped = await toBeSkipped(email, suppressed, request, deps)
  const hasFailed =
    email.status === 'queued' && email.provider_message_id === null && email.waiting?.state === 'failed'
  const ends = await findEnds(deps.database, team.id, [email], request.now)
  const ended = ends.get(email.id) ?? (hasFailed ? 'failed' : undefined)
  const body: Section[] = team.member
    ? await buildContent(found, request, deps)
    : [closedContent('Content', emailPath(request, 'content'))]
  return show({
    title: email.subject || '(no subject)',
    state: shownState(email, ended),
    lead: skipSentence(email, skipped) ?? emailSentence(email, ended),
    back: backTo(request, teamPath(team, 'emails'), 'Emails'),
    actions: actions(looked, way, suppressed),
    sections: compact([
      // A queued email to a suppressed address is skipped, whatever it waits for.
      ...buildSuppressed(looked, suppressed, skipped),
      ended !== 'expired' && whyItWaits(waitingAlerts(email, request), email.waiting?.state),
      ...(await linked(looked)),
      ...takenNote(looked, way),
      edits && moveForm(email, emailPath(request), request.cookies('zone')),
      resendForm(email, looked.emptied, request),
      everyone(email).length > 1 && recipients(email, contacts, request),
      whatHappened(buildMoments(email, request)),
      !email.internal && filesTable(email, request),
      ...body,
    ]),
    aside: facts(looked, contacts, await buildTemplateCell(looked)),
  })
}

const page = get('viewer', '/teams/:team/emails/:id', orDeleted(DELETED, showPage))

const opened = get('viewer', '/teams/:team/emails/:id/content', async (request, deps) => {
  const found = await emailAndState(request, deps)
  const { email } = found
  await noteOpened(request, deps, email.id)
  const back = { href: emailPath(request), label: 'Back to the email' }
  const sections = await buildContent(found, request, deps)
  const title = email.subject || '(no subject)'
  return show({ title, lead: `From ${email.from_address} to ${everyone(email).join(', ')}`, back, sections })
})

const preview = (pictures: boolean): TeamPage =>
  get(
    'viewer',
    `/teams/:team/emails/:id/preview${pictures ? '-with-pictures' : ''}`,
    async (request, deps) => {
      const email = await loadEmail(request, deps)
      if (email.internal) throw new RequestError('not_found', TEXTS.emailHidden)
      await noteOpened(request, deps, email.id)
      return raw(frameHeaders(pictures), framed(await withPictures(email, request, deps)))
    },
  )

const download = get('viewer', '/teams/:team/emails/:id/files/:place', async (request, deps) => {
  const email = await loadEmail(request, deps)
  if (email.internal) throw new RequestError('not_found', TEXTS.emailHidden)
  const file = fileAt(email, request.params.place)
  await auditRead(request, deps, { action: 'email.file', subject: `${email.id} ${file.filename}` })
  return fileAnswer(request, deps, file)
})

export const emailPages = [page, opened, preview(false), preview(true), download, ...emailActs]
