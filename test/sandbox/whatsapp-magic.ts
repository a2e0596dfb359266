/**
 * Defines the sandbox's Cloud API per number: its response, and the reports afterwards. The magic numbers are
 * those of test teams (workers/providers/test/whatsapp-magic-numbers.ts).
 */
import {
  FAULT_CODES,
  UNDELIVERABLE,
  type WhatsappReply,
  whatsappReply,
  whatsappReports,
} from '../../workers/providers/test/whatsapp-magic-numbers.ts'
import {
  type CloudAccount,
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

/** A template of the second account that `npm start` leaves to be added: with an image, and of marketing. */
const IMAGE_TEMPLATE: Json = {
  id: '1000000000000002',
  name: 'summer_offer',
  language: 'en_US',
  status: 'APPROVED',
  category: 'MARKETING',
  components: [
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['https://demo.test/summer.png'] } },
    { type: 'BODY', text: 'Hello {{1}}, our summer offer is here.', example: { body_text: [['Ana']] } },
    { type: 'FOOTER', text: 'Reply STOP to end these messages' },
  ],
}

const demoNumber = (id: string, digit: number, verified_name: string) => ({
  ...{ id, verified_name, display_phone_number: `+1 555-555-010${digit}`, quality_rating: 'GREEN' },
  whatsapp_business_manager_messaging_limit: 'TIER_1K',
})

/** The number that the second demo team has, and the token of its account. */
export const DEMO_NUMBER = {
  ...{ name: 'acme', phone_number_id: '100000000000004', account_id: '100000000000003' },
  token: 'sandbox-acme',
}

/** Two accounts with three numbers: that of the settings, and one of another customer. @param token the settings'. */
export const demoAccounts = (token: string): CloudAccount[] => [
  {
    ...{ id: '100000000000001', token, app_id: '1', subscribed: true, templates: [DEMO_TEMPLATE] },
    numbers: [demoNumber('100000000000002', 0, 'Heliograph Demo')],
  },
  {
    ...{ id: DEMO_NUMBER.account_id, token: DEMO_NUMBER.token, app_id: '1', subscribed: false },
    templates: [DEMO_TEMPLATE, IMAGE_TEMPLATE],
    numbers: [
      demoNumber(DEMO_NUMBER.phone_number_id, 8, 'Acme'),
      demoNumber('100000000000005', 9, 'Acme Support'),
    ],
  },
]
