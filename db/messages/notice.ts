/**
 * Notifies a team's owners by email of failures, from the service's own address. An email describes the failure and
 * its reason, but contains no webhook URL, no secret and no message content. Without that address, nothing is sent.
 */
import { dkimRecord } from '../accounts/domains/dkim.ts'
import { domainById, teamOfDomain } from '../accounts/domains/domains.sql.ts'
import { membersOfTeam } from '../accounts/members/people.sql.ts'
import { readBulkPause } from '../accounts/teams/reputation.sql.ts'
import { pauseFigures } from '../accounts/teams/reputation.ts'
import { requireTeam } from '../accounts/teams/view.ts'
import { KEPT_DAYS } from '../channels/events/webhooks.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Payload } from '../queue/jobs.ts'
import { type Mailbox, parseMailbox } from '../validation/address.ts'
import { compileHtml } from '../validation/attributes.ts'
import { fillSlots } from '../validation/slots.ts'
import { broadcastById } from './broadcasts/broadcasts.sql.ts'
import { pausedBecause } from './broadcasts/paused-because.ts'
import { type AcceptDeps, acceptEmails, idsOf } from './emails/accept.ts'
import type { EmailItem } from './emails/call.ts'
import { emailItem } from './emails/item.ts'
import { endpointById } from './webhooks/endpoints.sql.ts'
import { whatsappTemplatesOfTeam } from './whatsapp/templates.sql.ts'

/** The settings for notices. */
export type Notices = {
  /** The sender: DASHBOARD_FROM. */
  from: string | null
  /** The recipient of mail to postmaster@ and abuse@: OPERATOR_EMAIL. */
  operator: string | null
  /** Where the dashboard is: PUBLIC_URL. */
  site: string | null
}

/** A failure to report. `next` is the action that fixes it, `path` its page below the team's. */
type Stopped = { subject: string; what: string; next: string; path: string; link: string }

/** A disabled webhook. Null if it works again. */
async function disabledWebhook(tx: Tx, teamId: string, id: string, team: string): Promise<Stopped | null> {
  const endpoint = await endpointById(tx, teamId, id)
  if (endpoint?.state !== 'disabled') return null
  const { name, state_reason } = endpoint
  return {
    subject: `The webhook “${name}” was disabled`,
    what: `The webhook “${name}” of ${team} was disabled: ${state_reason}. It no longer receives events.`,
    next: `Once its server works again, enable the webhook and resend the events it missed. Events of the first ${KEPT_DAYS} days after it was disabled are stored.`,
    path: `webhooks/${id}`,
    link: 'Open the webhook',
  }
}

/** An automatically paused broadcast. Null after manual action. */
async function pausedBroadcast(tx: Tx, teamId: string, id: string, team: string): Promise<Stopped | null> {
  const row = await broadcastById(tx, teamId, id)
  if (!row || row.state_reason === null) return null
  const why = pausedBecause(row.state_reason, row.brake)
  return {
    subject: `The broadcast “${row.name}” was paused automatically`,
    what: `The broadcast “${row.name}” of ${team} was paused automatically. ${why}`,
    next: 'No more of its emails are sent while it is paused.',
    path: `broadcasts/${id}`,
    link: 'Open the broadcast',
  }
}

/** A domain without its DKIM record. Null if it was found again. */
async function failingDomain(tx: Tx, teamId: string, id: string, team: string): Promise<Stopped | null> {
  const domain = await domainById(tx, teamId, id)
  if (!domain || domain.failing_since === null) return null
  const { name, missing_since } = domain
  const since = (missing_since ?? '').slice(0, 10)
  return {
    subject: `The DKIM record of ${name} is missing or has another value`,
    what: `Since ${since}, the DKIM record ${dkimRecord(domain).name} of ${team} has been missing from DNS or has had another value.`,
    next: 'Email from this domain is still sent, but may be rejected or marked as spam. Publish the record again. Its value is on the domain’s page.',
    path: `domains/${name}`,
    link: 'Open the domain',
  }
}

/**
 * Returns the notice about a team's bounces and complaints, or null if the team was resumed since.
 * @param found `paused`, or the text of the warning.
 */
async function badReputation(tx: Tx, teamId: string, found: string, team: string): Promise<Stopped | null> {
  const hint = 'Remove addresses that you did not collect yourself, and find out where complaints come from.'
  const at = { path: 'emails', link: 'Open the emails' }
  if (found !== 'paused')
    return {
      subject: `Too many emails of ${team} bounce or are reported as spam`,
      what: `${team}: ${found}.`,
      next: `If the rate rises further, broadcasts and batches are paused. ${hint}`,
      ...at,
    }
  const paused = await readBulkPause(tx, teamId)
  return (
    paused && {
      subject: `Broadcasts and batches of ${team} are paused`,
      what: `Broadcasts and batches of ${team} are paused: ${pauseFigures(paused.pause)}. Single emails are still sent.`,
      next: `${hint} Then resume broadcasts and batches on the team’s overview.`,
      ...{ ...at, path: '', link: 'Open the overview' },
    }
  )
}

/** A WhatsApp template whose category Meta has changed. Null if it was deleted. */
async function changedCategory(
  tx: Tx,
  teamId: string,
  { template_id, category_before }: { template_id: string; category_before: string | undefined },
  team: string,
): Promise<Stopped | null> {
  const rows = await whatsappTemplatesOfTeam(tx, teamId)
  const template = rows.find(({ id }) => id === template_id)
  if (!template) return null
  const { name, language, category } = template
  return {
    subject: `The category of the WhatsApp template ${name} has changed`,
    what: `Meta has changed the category of the template ${name} (${language}) of ${team} from ${category_before} to ${category}. Messages with it may cost more, and recipients who opted out of marketing don’t receive MARKETING messages.`,
    next: 'If the category is wrong, ask Meta for a review in WhatsApp Manager, or make a new template.',
    path: `whatsapp-templates/${template_id}`,
    link: 'Open the template',
  }
}

const WORDS = '<p>{{what}}</p><p>{{next}}</p>'
const LINK = '<p><a href="{{url}}">{{link}}</a></p>'
const REASON = '<p style="color:#5c656d;font-size:13px">{{reason}}</p>'
const WITHOUT_LINK = compileHtml(WORDS + REASON)
const WITH_LINK = compileHtml(WORDS + LINK + REASON)

function noticeEmail(
  { from, to, key, team }: { from: Mailbox; to: string; key: string; team: string },
  { subject, what, next, link }: Stopped,
  url: string | null,
): EmailItem {
  const reason = `You’re receiving this email because you are an owner of ${team}.`
  return emailItem({
    ...{ from, to: [to], subject, idempotency_key: key },
    html: fillSlots(
      url === null ? WITHOUT_LINK : WITH_LINK,
      { what, next, link, reason, url: url ?? '' },
      'html',
    ),
    text: `${what}\n\n${next}\n${url === null ? '' : `\n${url}\n`}\n${reason}\n`,
  })
}

/** Notifies the owners of a team. @returns how many it wrote to, or why it couldn't. @throws RequestError */
export async function emailOwners(
  deps: AcceptDeps,
  notice: Payload<'mail-owners'>,
  { from: sender, site }: Notices,
): Promise<number | 'no address' | 'no domain'> {
  const { team_id, endpoint_id, broadcast_id, domain_id, template_id, reputation, notice_id } = notice
  const { tx } = deps
  const from = parseMailbox(sender ?? '')
  if (!from) return 'no address'
  const owner = await teamOfDomain(tx, from.domain)
  if (owner === null) return 'no domain'
  const { name: team } = await requireTeam(tx, team_id)
  const stopped = endpoint_id
    ? await disabledWebhook(tx, team_id, endpoint_id, team)
    : template_id
      ? await changedCategory(tx, team_id, { template_id, category_before: notice.category_before }, team)
      : domain_id
        ? await failingDomain(tx, team_id, domain_id, team)
        : reputation
          ? await badReputation(tx, team_id, reputation, team)
          : await pausedBroadcast(tx, team_id, broadcast_id ?? '', team)
  if (stopped === null) return 0
  const url = site === null ? null : new URL(`/dashboard/teams/${team_id}/${stopped.path}`, site).href
  const items = (await membersOfTeam(tx, team_id))
    .filter(({ role }) => role === 'owner')
    .map(({ email: to, user_id }) =>
      noticeEmail({ from, to, key: `stopped:${notice_id}:${user_id}`, team }, stopped, url),
    )
  if (items.length === 0) return 0
  const outcomes = await acceptEmails(
    deps,
    { team_id: owner, domain: null, rated: false, internal: true },
    items,
  )
  return idsOf(outcomes).length
}
