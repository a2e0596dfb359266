/** The descriptions of the WhatsApp endpoints. */
import { describedAs } from '../docs/about.ts'
import { BATCH_ANSWER, SEND, SEND_TIMES } from './about.ts'

const MESSAGE_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  template_id: 'A template from the dashboard, approved by the provider.',
  to: 'Phone numbers in E.164 format. Separators are removed, and each number gets its own message.',
  parameters: 'All variables of the template, such as `body:1`, and nothing else.',
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
