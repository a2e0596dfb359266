/** What the API's description says of the calls of WhatsApp in words; about.ts has the others. */
import { describedAs } from '../docs/about.ts'
import { BATCH_ANSWER, SEND, SEND_TIMES } from './about.ts'

const MESSAGE_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  template_id: 'A template of the dashboard, approved by the provider.',
  to: 'Numbers in E.164 form; separators are stripped, and each number gets a message of its own.',
  parameters: 'Every slot that the template declares, such as `body:1`, and no other.',
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
