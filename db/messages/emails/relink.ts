/**
 * The unsubscribe links in an email that is sent again: those of its own recipients become somebody else's. Pure.
 * Promises: a link of another team's, or of another person's, stays as it is: typing an address makes nobody a link.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Secrets } from '../../process/secrets.ts'
import { TEXTS } from '../texts.ts'
import { LINK_PURPOSES, namesTeam, personToken, readPersonToken } from './person-token.ts'
import { everyone, recipientIdentity } from './recipients.ts'
import type { ShownEmail } from './show.ts'

/** What may be the token of a link of ours. */
const LINK_TOKEN = /(?<=\/u\/)[\w-]{60,}/g
/** How many different links of its team's one email may have: to open each takes a moment. */
const MAX_LINKS = 100

/**
 * Gives a part of the email the links of a person, '' for nobody.
 * @throws RequestError bad_request when the email has too many.
 */
export function relinker(secrets: Secrets, email: ShownEmail, person: string): (part: string) => string {
  const recipients = new Set(everyone(email).map(recipientIdentity))
  const links = new Map<string, string>()
  function linkOf(token: string): string {
    if (links.size === MAX_LINKS)
      throw new RequestError('bad_request', fill(TEXTS.tooManyLinks, { most: MAX_LINKS }))
    for (const purpose of LINK_PURPOSES) {
      const named = readPersonToken(secrets, purpose, token)
      if (named && recipients.has(named.person)) return personToken(secrets, purpose, { ...named, person })
    }
    return token
  }
  return (part) =>
    part.replace(LINK_TOKEN, (token) => {
      if (!namesTeam(token, email.team_id)) return token
      const link = links.get(token) ?? linkOf(token)
      links.set(token, link)
      return link
    })
}
