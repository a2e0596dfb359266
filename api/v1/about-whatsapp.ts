/** The descriptions of the WhatsApp endpoints. */
import { describedAs } from '../docs/about.ts'
import { BATCH_ANSWER, SEND, SEND_TIMES } from './about.ts'

const MESSAGE_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  template_id: 'A template from the dashboard, approved by Meta.',
  to: 'Phone numbers in E.164 format. Separators are removed, and each number gets its own message.',
  parameters:
    'All variables of the template, and nothing else. `body:1` is the first variable of the body, even if the template gives it a name. `header:1` is the variable of a text header, or the https URL of an image, a video or a document. `header:2` is a document’s file name. A location has `header:1` to `header:4`: latitude, longitude, name and address. `url:1` and `url:2` belong to the dynamic URL buttons, and `code:1` to a button that copies a coupon code.',
}

const MESSAGE_REFUSALS = [
  ...(['invalid_phone', 'not_found', 'template_disabled', 'template_unsupported'] as const),
  ...(['invalid_params', 'quota_exceeded'] as const),
]

const AMESSAGE = {
  template_id: '$WHATSAPP_TEMPLATE_ID',
  to: ['+15555550101'],
  parameters: { 'body:1': 'Ana' },
}

export const ABOUT_WHATSAPP = describedAs('WhatsApp', {
  sendWhatsapp: {
    summary: 'Send a template message to 1 to 50 numbers',
    description: [
      'Stores one message per number and queues them for delivery. Either all are stored, or none.',
    ],
    takes: 'NewWhatsappMessage',
    takesIdempotencyKey: true,
    notes: MESSAGE_NOTES,
    example: { ...AMESSAGE, idempotency_key: 'order-1001-shipped' },
    answers: {
      201: { when: 'Stored and queued, one message per number.', body: 'WhatsappMessages' },
      200: {
        when: 'A repeated call. Returns the messages stored with this key and their current status.',
        body: 'WhatsappMessages',
      },
    },
    refusals: MESSAGE_REFUSALS,
  },
  sendWhatsapps: {
    summary: 'Send up to 100 template messages',
    takes: 'NewWhatsappMessage',
    description: ['The ID of an item is the ID of its first message.'],
    notes: MESSAGE_NOTES,
    example: { messages: [AMESSAGE] },
    answers: { 200: BATCH_ANSWER },
    refusals: ['batch_too_large', 'quota_exceeded'],
  },
})
