/**
 * How the sandbox's Cloud API treats numbers: what it answers, and what it reports of a message afterwards. The magic
 * numbers are those of test teams (workers/providers/test/whatsapp-magic-numbers.ts).
 */
import {
  FAULT_CODES,
  UNDELIVERABLE,
  type WhatsappReply,
  whatsappReply,
  whatsappReports,
} from '../../workers/providers/test/whatsapp-magic-numbers.ts'
import {
  type CloudAnswer,
  type CloudMessage,
  type CloudScript,
  type CloudStatus,
  cloudError,
  type Json,
} from './whatsapp.ts'

const { title, details } = UNDELIVERABLE
const ERRORS = [{ code: FAULT_CODES.undeliverable, title, message: title, error_data: { details } }]

const ANSWERS: Record<WhatsappReply, CloudAnswer | undefined> = {
  taken: undefined,
  undeliverable: { status: 400, body: cloudError(FAULT_CODES.undeliverable, title, details) },
  'too fast': { status: 429, body: cloudError(FAULT_CODES['too fast'], 'Rate limit hit') },
  'too many to it': {
    status: 400,
    body: cloudError(
      FAULT_CODES['too many to it'],
      '(Business Account, Consumer Account) pair rate limit hit',
    ),
  },
}

/** The magic numbers of whatsapp-magic-numbers.ts. */
export const magicNumbers = (): CloudScript => ({
  onMessage: ({ body, tries }: CloudMessage) => ANSWERS[whatsappReply(String(body.to), tries)],
  reports: ({ body }: CloudMessage) =>
    whatsappReports(String(body.to)).map(
      (status): CloudStatus => ({ status, ...(status === 'failed' ? { errors: ERRORS } : {}) }),
    ),
})

/** The template that `npm start` shows: stored for the demo team, listed by the sandbox. */
export const DEMO_TEMPLATE: Json = {
  id: '1000000000000001',
  name: 'order_ready',
  language: 'en_US',
  status: 'APPROVED',
  category: 'UTILITY',
  components: [
    { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}', example: { header_text: ['A-17'] } },
    {
      type: 'BODY',
      text: 'Hello {{1}}, your order is ready {{2}}.',
      example: { body_text: [['Ana', 'tomorrow']] },
    },
    { type: 'FOOTER', text: 'Heliograph demo' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'QUICK_REPLY', text: 'Thanks' },
        {
          type: 'URL',
          text: 'See it',
          url: 'https://demo.test/{{1}}',
          example: ['https://demo.test/orders/17'],
        },
      ],
    },
  ],
}
