/** The filter of a team's emails: how the address, or a form, holds it. */

import { teamOrRefusal } from '../../../db/accounts/teams/view.ts'
import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { Refusal } from '../../../db/errors.ts'
import type { EmailFilter } from '../../../db/messages/emails/find.ts'
import type { PageDeps } from '../served/deps.ts'
import { dayOf, given, idGiven, wordGiven } from '../served/list.ts'
import type { TeamRequest } from '../served/page.ts'
import { soughtIn } from '../served/search.ts'

/** The filter that the address, or a form, holds. @throws Refusal bad_request. */
export function filterOf(query: URLSearchParams): Omit<EmailFilter, 'team_id'> {
  const typed = given(query, 'q')
  const sought = typed === undefined ? {} : soughtIn(typed)
  const [twice] = Object.keys(sought).filter((name) => given(query, name) !== undefined)
  if (twice !== undefined)
    throw new Refusal('bad_request', `q names another ${twice} than the field for it: clear one of them`)
  return {
    recipient: given(query, 'recipient'),
    subject: given(query, 'subject'),
    id: given(query, 'id'),
    ...sought,
    status: wordGiven(query, 'status', EMAIL_LADDER),
    domain: given(query, 'domain'),
    template_id: idGiven(query, 'template'),
    broadcast_id: idGiven(query, 'broadcast'),
    tag: given(query, 'tag'),
    from: dayOf(query, 'from'),
    // The last day counts whole.
    to: dayOf(query, 'to', 1),
  }
}

export const NAMES = [
  ...['q', 'recipient', 'subject', 'id', 'status', 'domain'],
  ...['template', 'broadcast', 'tag', 'from', 'to'],
]

/** The parts of the filter that are set, as the address has them. */
export const chosen = (query: URLSearchParams): URLSearchParams =>
  new URLSearchParams([...query].filter(([name, value]) => NAMES.includes(name) && value !== ''))

/** No email of the team is older. */
export const beginningOf = async ({ team }: TeamRequest, { database }: PageDeps): Promise<Date> =>
  new Date((await teamOrRefusal(database, team.id)).created_at)
