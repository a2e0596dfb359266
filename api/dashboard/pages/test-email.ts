/** Sends a test email from a verified domain of the team to any address. */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { parseSender } from '../../../db/messages/emails/item.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { formatMailbox, parseMailbox } from '../../../db/validation/address.ts'
import { compileHtml } from '../../../db/validation/attributes.ts'
import { fillSlots } from '../../../db/validation/slots.ts'
import type { Section } from '../components/section.ts'
import { buildForm, buildOptions, compact, field, post } from '../server/builders.ts'
import { queryParam } from '../server/list.ts'
import { redirect, type TeamRequest, teamPath } from '../server/page.ts'
import { sendOwn } from './own-mail.ts'

const SUBJECT = 'A test email from Heliograph'
const TEXT = 'It works. This email was accepted, signed and delivered like all emails of your team.'

/** Suggests a sender for each verified domain of a team. */
export async function suggestSenders(tx: Tx, teamId: string): Promise<string[]> {
  const domains = await domainsOfTeam(tx, teamId)
  return domains.flatMap(({ name, status }) => (status === 'verified' ? [`hello@${name}`] : []))
}

/** Builds the form. It is empty for viewers and before a domain is verified. */
export async function testEmailForm(
  { team, person }: TeamRequest,
  tx: Tx,
  { folded = true, to = person.email }: { folded?: true | 'menu'; to?: string } = {},
): Promise<Section[]> {
  const from = await suggestSenders(tx, team.id)
  return compact([
    team.role !== 'viewer' &&
      from.length > 0 &&
      buildForm(teamPath(team, 'integration', 'test-email'), 'Send test email', {
        title: 'Send a test email',
        note: 'Counts towards your quota.',
        folded,
        fields: [
          field('from', 'From', { type: 'select', options: buildOptions(from, []) }),
          field('to', 'To', { type: 'email', required: true, value: to }),
        ],
      }),
  ])
}

const send = post('editor', '/teams/:team/integration/test-email', async ({ team, form }, deps) => {
  const mailbox = parseMailbox(queryParam(form, 'to') ?? '')
  if (!mailbox) throw invalidField('to', 'must be an email address')
  const [from, to] = [parseSender(queryParam(form, 'from') ?? ''), formatMailbox(mailbox)]
  const mail = {
    from,
    to: [to],
    subject: SUBJECT,
    html: fillSlots(compileHtml('<p>{{text}}</p>'), { text: TEXT }, 'html'),
    text: TEXT,
  }
  const id = await sendOwn(deps, { team_id: team.id, domain: null, rated: false }, mail)
  return redirect(teamPath(team, 'emails', id), `A test email is on its way to ${to}.`)
})

export const testEmailPages = [send]
