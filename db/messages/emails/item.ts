/** What a send says of itself, as its fields become an email's: sender, reply address, what it leaves out. Pure. */

import { RequestError } from '../../errors.ts'
import { LONGEST_NAME, type Mailbox, parseMailbox } from '../../validation/address.ts'
import { codePoints } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import type { EmailItem } from './call.ts'

/** What an email of ours says, and to whom. */
export type SaidOfEmail = Pick<EmailItem, 'from' | 'to' | 'subject'> & Partial<EmailItem>

/** An email that says this, and of the rest nothing. */
export const emailItem = (said: SaidOfEmail): EmailItem => ({
  ...{ path: '', html: null, text: null, template_id: null, variables: null },
  ...{ headers: null, reply_to: '', tags: [], idempotency_key: null },
  ...said,
})

/**
 * The bare reply address, '' without one. @param path where the send lies in a batch.
 * @throws RequestError invalid_reply_to
 */
export function replyToOf(given: string | undefined, path = ''): string {
  if (given === undefined || given === '') return ''
  const mailbox = parseMailbox(given)
  if (!mailbox)
    throw new RequestError('invalid_reply_to', { field: `${path}reply_to`, problem: TEXTS.notAddress })
  return mailbox.address
}

/** Who sends. @throws RequestError invalid_from */
export function fromOf(given: string, path = ''): Mailbox {
  const mailbox = parseMailbox(given)
  if (mailbox && codePoints(mailbox.name ?? '') <= LONGEST_NAME) return mailbox
  throw new RequestError('invalid_from', { field: `${path}from`, problem: TEXTS.notMailbox })
}
