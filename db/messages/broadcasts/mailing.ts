/**
 * Builds a broadcast's email to one contact. Adds the headers that mailbox providers require for bulk mail (RFC 2919,
 * Gmail's Feedback-ID) unless the broadcast sets them. Pure.
 */

import { fill } from '../../fill.ts'
import { type Mailbox, parseMailbox } from '../../validation/address.ts'
import { LONGEST_SUBJECT } from '../../validation/fields.ts'
import {
  compileTemplate,
  fillSlots,
  missingSlots,
  type Template,
  UNSUBSCRIBE_SLOT,
} from '../../validation/slots.ts'
import { codePoints } from '../../validation/strings.ts'
import type { EmailItem } from '../emails/call.ts'
import { emailItem } from '../emails/item.ts'
import { TEXTS } from '../texts.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

/** The part that all emails of a broadcast share. */
export type Mailing = {
  row: BroadcastRow
  slots: readonly string[]
  subject: Template
  item: Pick<EmailItem, 'from' | 'template_id' | 'headers' | 'reply_to' | 'tags'>
}

/** @param slots of the template's version. */
export function toMailing(row: BroadcastRow, slots: readonly string[]): Mailing {
  const from = parseMailbox(row.from_address)
  if (!from) throw new Error(`broadcast ${row.id} has an invalid from address`)
  const { template_id, reply_to, tags } = row
  const item = { from, template_id, headers: buildHeaders(row, from), reply_to, tags }
  const subject = compileTemplate(row.subject)
  return { row, slots: [...new Set([...slots, ...subject.slots])], subject, item }
}

function buildHeaders(
  { headers, team_id, id, topic_ids }: BroadcastRow,
  { domain }: Mailbox,
): Record<string, string> {
  const given = headers ?? {}
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  // A test of a draft that has no topic yet.
  const [list = id] = topic_ids
  const ours = {
    'List-Id': `<${list}.${domain}>`,
    'Feedback-ID': `${id}:${list}:broadcast:${team_id.slice(-12)}`,
    Precedence: 'bulk',
  }
  const missing = Object.entries(ours).filter(([name]) => !names.has(name.toLowerCase()))
  return { ...given, ...Object.fromEntries(missing) }
}

type Addressee = { email: string; properties: Readonly<Record<string, string>> }

/** Returns a recipient's email, or the reason to skip the recipient. @param link the unsubscribe link. */
export function addressed(
  { row, slots, subject, item }: Mailing,
  { email, properties }: Addressee,
  link: string,
): EmailItem | string {
  const variables = { ...row.variables, ...properties, email, [UNSUBSCRIBE_SLOT]: link }
  const missing = missingSlots(slots, variables)
  if (missing.length > 0) return fill(TEXTS.missingValue, { names: missing.join(', ') })
  const line = fillSlots(subject, variables, 'none').replaceAll(/[\r\n]+/g, ' ')
  if (line.trim() === '' || codePoints(line) > LONGEST_SUBJECT)
    return fill(TEXTS.subjectTooLong, { count: codePoints(line.trim()) })
  return emailItem({ ...item, to: [email], subject: line, variables })
}
