/**
 * Replaces the unsubscribe links in an email that is sent again with links of the new recipient. Links of other teams
 * or addresses don't change, so that a user can't create a link by entering an address. Pure.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Secrets } from '../../process/secrets.ts'
import { recipientIdentity } from '../../validation/addressees.ts'
import { TEXTS } from '../texts.ts'
import { LINK_PURPOSES, namesTeam, personToken, readPersonToken } from './person-token.ts'
import { everyone } from './recipients.ts'
import type { ShownEmail } from './show.ts'

/** Matches text that may be a link token. */
const LINK_TOKEN = /(?<=\/u\/)[\w-]{60,}/g
/** The maximum number of different links of its team in an email. Decrypting each is slow. */
const MAX_LINKS = 100

/**
 * Returns a function that replaces the links in a part of the email with those of an address, or '' for no one.
 * @throws RequestError bad_request if the email has too many links.
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
