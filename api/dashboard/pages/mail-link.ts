/**
 * Emails a sign-in link with our own delivery, from the team that has verified the domain of DASHBOARD_FROM.
 * The response and its duration don't reveal if the address is known or a limit is reached. The email is
 * internal: it isn't in the team's lists, exports and stats, and no one can see its content.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { teamOfDomain } from '../../../db/accounts/domains/domains.sql.ts'
import { deleteLinkRequest, type Place } from '../../../db/accounts/members/sessions.sql.ts'
import { LINK_LENGTH_MS, requestLink } from '../../../db/accounts/members/sign-in.ts'
import { plural } from '../../../db/plural.ts'
import { type Mailbox, parseMailbox } from '../../../db/validation/address.ts'
import { compileHtml } from '../../../db/validation/attributes.ts'
import { fillSlots } from '../../../db/validation/slots.ts'
import { BASE } from '../components/base.ts'
import { compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { localPath } from '../server/guard.ts'
import type { PageRequest } from '../server/page.ts'
import { sendOwn } from './own-mail.ts'

/** Minimum duration of a response in milliseconds. It hides how long the work lasts. */
const MIN_ANSWER_MS = 400

/** Returns the path of a sign-in link. @param returnTo the page to open afterwards. Both are after /dashboard. */
export const linkPath = (secret: string, returnTo: string): string => {
  const search = returnTo === '' ? '' : `?${new URLSearchParams({ return_to: BASE + returnTo })}`
  return `/login/${encodeURIComponent(secret)}${search}`
}

const MAX_TEAMS_NAMED = 3

/** Lists the teams of a link: `, owner of Northwind and viewer of Contoso`, or '' for an operator without teams. */
export function describeTeams(places: readonly Place[]): string {
  const named = places.slice(0, MAX_TEAMS_NAMED).map(({ name, role }) => `${role} of ${name}`)
  const others = places.length - named.length
  const all = compact([...named, others > 0 && plural(others, 'more team')])
  return all.length === 0 ? '' : `, ${new Intl.ListFormat('en-GB').format(all)}`
}

const LINK_HTML = compileHtml('<p>{{words}}</p><p><a href="{{url}}">Sign in</a></p><p>{{ignore}}</p>')

function linkWords({ to, places }: { to: string; places: readonly Place[] }, url: string) {
  const words = `Follow this link to sign in to Heliograph as ${to}${describeTeams(places)}. It works once, within 15 minutes.`
  const ignore = 'If you didn’t request it, you can ignore this email.'
  return {
    subject: 'Your sign-in link',
    html: fillSlots(LINK_HTML, { words, url, ignore }, 'html'),
    text: `${words}\n\n${url}\n\n${ignore}\n`,
  }
}

type LinkMail = { from: Mailbox; to: string; places: readonly Place[]; url: string }

/** Sends a link as the team that has verified the sender's domain. @returns false if no team has. */
async function sendLink(deps: PageDeps, { from, to, places, url }: LinkMail): Promise<boolean> {
  const team = await teamOfDomain(deps.database, from.domain)
  if (team === null) {
    deps.log.error(
      { domain: from.domain },
      'no team has verified the domain of DASHBOARD_FROM: no sign-in link was sent',
    )
    return false
  }
  // The email expires with its link.
  const when = { scheduled_at: null, expires_in: LINK_LENGTH_MS / 1_000 }
  const mail = { from, to: [to], when, ...linkWords({ to, places }, url) }
  await sendOwn(deps, { team_id: team, domain: null, internal: true }, mail)
  return true
}

async function send({ site, now, origin, form }: PageRequest, deps: PageDeps, email: string): Promise<void> {
  const { database } = deps
  const from = parseMailbox(deps.from ?? '')
  if (!from) return
  const request = await database.transaction((tx) => requestLink({ tx, now }, { email, origin }))
  if (!request) return
  const { id, email: to, places, secret } = request
  const url = new URL(BASE + linkPath(secret, localPath(BASE + form.get('return_to'))), site).href
  let isSent = false
  try {
    isSent = await sendLink(deps, { from, to, places, url })
  } finally {
    if (!isSent) await deleteLinkRequest(database, id)
  }
}

/** Sends a link if a user can sign in with this address. Takes the same time either way. */
export async function mailLink(request: PageRequest, deps: PageDeps, email: string): Promise<void> {
  const sent = send(request, deps, email).catch((error: unknown) =>
    deps.log.error({ err: error }, 'a sign-in link was not sent'),
  )
  await Promise.all([sent, sleep(MIN_ANSWER_MS)])
}
