/**
 * How the sandbox's Cloud API treats numbers: what it answers, and what it reports of a message afterwards.
 *
 * Magic numbers, all of the range that is kept for fiction; any other number behaves like the first:
 * - +15555550101 is taken, then reported sent and delivered.
 * - +15555550102 is taken, then reported sent, delivered and read.
 * - +15555550103 is taken, then reported failed (131026, undeliverable).
 * - +15555550104 is refused at once (131026).
 * - +15555550105 is rate limited twice (130429), then taken and delivered.
 * - +15555550106 is refused once because of too many messages to it (131056), then taken and delivered.
 * - +15555550107 is taken, and nothing is ever reported of it.
 */
import {
  type CloudAnswer,
  type CloudMessage,
  type CloudScript,
  type CloudStatus,
  cloudError,
  type Json,
} from './whatsapp.ts'

const UNDELIVERABLE = 'Message undeliverable'
const DETAILS = 'Message Undeliverable. The number may not be on WhatsApp.'

const delivered: readonly CloudStatus[] = [{ status: 'sent' }, { status: 'delivered' }]
const failed: CloudStatus = {
  status: 'failed',
  errors: [{ code: 131026, title: UNDELIVERABLE, message: UNDELIVERABLE, error_data: { details: DETAILS } }],
}

const ANSWERS: Readonly<Record<string, (tries: number) => CloudAnswer | undefined>> = {
  '+15555550104': () => ({ status: 400, body: cloudError(131026, UNDELIVERABLE, DETAILS) }),
  '+15555550105': (tries) =>
    tries < 2 ? { status: 429, body: cloudError(130429, 'Rate limit hit') } : undefined,
  '+15555550106': (tries) =>
    tries < 1
      ? { status: 400, body: cloudError(131056, '(Business Account, Consumer Account) pair rate limit hit') }
      : undefined,
}

const REPORTS: Readonly<Record<string, readonly CloudStatus[]>> = {
  '+15555550102': [...delivered, { status: 'read' }],
  '+15555550103': [failed],
  '+15555550107': [],
}

/** The magic numbers of the header above. */
export const magicNumbers = (): CloudScript => ({
  onMessage: ({ body, tries }: CloudMessage) => ANSWERS[String(body.to)]?.(tries),
  reports: ({ body }: CloudMessage) => REPORTS[String(body.to)] ?? delivered,
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
