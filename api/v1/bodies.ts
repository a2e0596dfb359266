/**
 * The bodies of all calls. The parser's thread only loads these shapes and no handlers, so it starts fast and
 * needs little memory.
 */
import { object } from 'yup'
import { REQUIRED } from '../../db/errors.ts'
import { time } from '../../db/validation/fields.ts'
import { type BodyShape, json } from '../http/input.ts'
import * as broadcast from './broadcast-bodies.ts'
import * as contact from './contact-bodies.ts'
import { emailBody, emailsBody } from './email-body.ts'
import { messageBody, messagesBody } from './whatsapp-body.ts'

export const moveBody = json(object({ scheduled_at: time(() => new Date()).required(REQUIRED) }))

/** By method and path, as the routes declare them. */
export const BODIES: Readonly<Record<string, BodyShape<unknown>>> = {
  'POST /v1/contacts': contact.createBody,
  'PATCH /v1/contacts/:email': contact.changeBody,
  'POST /v1/contacts/bulk': contact.bulkBody as BodyShape<unknown>,
  'POST /v1/marketing/unsubscribe': contact.unsubscribeBody,
  'POST /v1/emails': emailBody,
  'POST /v1/emails/batch': emailsBody,
  'PATCH /v1/emails/:id': moveBody,
  'POST /v1/whatsapp/messages': messageBody,
  'POST /v1/whatsapp/messages/batch': messagesBody,
  'PATCH /v1/whatsapp/messages/:id': moveBody,
  'POST /v1/broadcasts': broadcast.newBody,
  'PATCH /v1/broadcasts/:id': broadcast.changeBody,
  'POST /v1/broadcasts/:id/test': broadcast.testBody,
  'POST /v1/broadcasts/:id/send': broadcast.sendBody,
}
