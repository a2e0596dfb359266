/** Converts the fields of a send into those of an email: sender, reply address and defaults. Pure. */

import { RequestError } from '../../errors.ts'
import { LONGEST_NAME, type Mailbox, parseMailbox } from '../../validation/address.ts'
import { codePoints } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import type { EmailItem } from './call.ts'

/** The content and recipients of an email. Its other fields are optional. */
export type SaidOfEmail = Pick<EmailItem, 'from' | 'to' | 'subject'> & Partial<EmailItem>

export const emailItem = (said: SaidOfEmail): EmailItem => ({
  ...{ path: '', html: null, text: null, template_id: null, variables: null },
  ...{ headers: null, reply_to: '', tags: [], idempotency_key: null },
  ...said,
})

/**
 * Returns the bare reply address, or ''. @param path the path of the send in a batch. @throws RequestError
 * invalid_reply_to
 */
export function parseReplyTo(given: string | undefined, path = ''): string {
  if (given === undefined || given === '') return ''
  const mailbox = parseMailbox(given)
  if (!mailbox)
    throw new RequestError('invalid_reply_to', { field: `${path}reply_to`, problem: TEXTS.notAddress })
  return mailbox.address
}

/** Parses the sender. @throws RequestError invalid_from */
export function parseSender(given: string, path = ''): Mailbox {
  const mailbox = parseMailbox(given)
  if (mailbox && codePoints(mailbox.name ?? '') <= LONGEST_NAME) return mailbox
  throw new RequestError('invalid_from', { field: `${path}from`, problem: TEXTS.notMailbox })
}
