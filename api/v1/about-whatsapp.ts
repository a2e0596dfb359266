/** What the API's description says of the calls of WhatsApp in words; about.ts has the others. */
import { describedAs } from '../docs/about.ts'
import { BATCH_ANSWER, SEND, SEND_TIMES } from './about.ts'

const MESSAGE_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  template_id: 'A template of the dashboard, approved by the provider.',
  to: 'Numbers in E.164 form; separators are stripped, and each number gets a message of its own.',
  parameters:
    'Every slot that the template declares, and no other: `body:1` is the first variable of the body, also if it has a name. `header:1` is the variable of a text header, or the https URL of an image, a video or a document, whose file name is `header:2`. A location has `header:1` to `header:4`: latitude, longitude, name and address. `url:1` and `url:2` are the variables of the dynamic URL buttons, `code:1` is the code of a button that copies one.',
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
    description: ['Stores a message for each number and queues them for delivery: all of them, or none.'],
    takes: 'NewWhatsappMessage',
    takesIdempotencyKey: true,
    notes: MESSAGE_NOTES,
    example: { ...AMESSAGE, idempotency_key: 'order-1001-shipped' },
    answers: {
      201: { when: 'Stored and queued, a message for each number.', body: 'WhatsappMessages' },
      200: {
        when: 'A replay: the messages that were stored under this key, as they stand.',
        body: 'WhatsappMessages',
      },
    },
    refusals: MESSAGE_REFUSALS,
  },
  sendWhatsapps: {
    summary: 'Send up to 100 template messages',
    takes: 'NewWhatsappMessage',
    description: ['The id of an item is that of its first message.'],
    notes: MESSAGE_NOTES,
    example: { messages: [AMESSAGE] },
    answers: { 200: BATCH_ANSWER },
    refusals: ['batch_too_large', 'quota_exceeded'],
  },
})
