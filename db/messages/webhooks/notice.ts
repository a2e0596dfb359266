/**
 * The mail that notifies a team's owners of a webhook that was disabled by itself.
 * Promises: an email to each owner, once, from the address of the service's own mail; it names the webhook and says
 * why, and holds neither its URL, nor a secret, nor anything that was sent to it. Without such an address there is
 * none. Must not decide what is disabled.
 */
import { teamOfDomain } from '../../accounts/domains/domains.sql.ts'
import { membersOfTeam } from '../../accounts/people/people.sql.ts'
import { teamOrRefusal } from '../../accounts/teams/view.ts'
import { KEPT_DAYS } from '../../channels/happenings/webhooks.sql.ts'
import { type Mailbox, parseMailbox } from '../../text/address.ts'
import { escapeHtml } from '../../text/slots.ts'
import { type AcceptDeps, acceptEmails } from '../emails/accept.ts'
import type { EmailItem } from '../emails/call.ts'
import { type EndpointRow, endpointById } from './endpoints.sql.ts'

/** How the service writes to people. */
export type Notices = {
  /** Who its mail comes from: DASHBOARD_FROM. */
  from: string | null
  /** Where the dashboard is: PUBLIC_URL. */
  site: string | null
}

type Notice = { team_id: string; endpoint_id: string; notice_id: string }

/** What is said, for `to`. */
function noticeEmail(
  { from, to, key }: { from: Mailbox; to: string; key: string },
  { name, state_reason }: EndpointRow,
  { team, url }: { team: string; url: string | null },
): EmailItem {
  const what = `The webhook “${name}” of ${team} was disabled: ${state_reason}. Nothing more is sent to it.`
  const next = `Once its server works again, enable it under Webhooks, and send again what it missed. What happens is kept for ${KEPT_DAYS} days.`
  const link = url === null ? '' : `<p><a href="${escapeHtml(url)}">Open the webhook</a></p>`
  return {
    path: '',
    from,
    to: [to],
    subject: 'A webhook was disabled',
    html: `<p>${escapeHtml(what)}</p><p>${next}</p>${link}`,
    template_id: null,
    variables: null,
    text: `${what}\n\n${next}\n${url === null ? '' : `\n${url}\n`}`,
    headers: null,
    reply_to: '',
    tags: [],
    idempotency_key: key,
  }
}

/**
 * Writes to the owners of a team that a webhook of theirs is disabled.
 * @returns how many it wrote to, or why it could not. @throws Refusal
 */
export async function mailOwnersOf(
  deps: AcceptDeps,
  { team_id, endpoint_id, notice_id }: Notice,
  { from: sender, site }: Notices,
): Promise<number | 'no address' | 'no domain'> {
  const { tx } = deps
  const from = parseMailbox(sender ?? '')
  if (!from) return 'no address'
  const owner = await teamOfDomain(tx, from.domain)
  if (owner === null) return 'no domain'
  const endpoint = await endpointById(tx, team_id, endpoint_id)
  if (endpoint?.state !== 'disabled') return 0
  const { name: team } = await teamOrRefusal(tx, team_id)
  const path = `/dashboard/teams/${team_id}/webhooks/${endpoint_id}`
  const words = { team, url: site === null ? null : new URL(path, site).href }
  const items = (await membersOfTeam(tx, team_id))
    .filter(({ role }) => role === 'owner')
    .map(({ email: to, user_id }) =>
      noticeEmail({ from, to, key: `webhook-disabled:${notice_id}:${user_id}` }, endpoint, words),
    )
  if (items.length === 0) return 0
  const outcomes = await acceptEmails(
    deps,
    { team_id: owner, domain: null, rated: false, internal: true },
    items,
  )
  for (const outcome of outcomes) if (outcome.kind === 'refused') throw outcome.refusal
  return outcomes.length
}
