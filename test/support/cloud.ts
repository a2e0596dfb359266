/** Starts the simulated Cloud API for tests, with a real provider. It closes with the test. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { createWhatsappProvider, type WhatsappCloudOptions } from '../../workers/providers/whatsapp/cloud.ts'
import type { OutgoingWhatsapp, WhatsappDelivery } from '../../workers/providers/whatsapp/provider.ts'
import {
  startWhatsappSandbox,
  type WhatsappSandbox,
  type WhatsappSandboxOptions,
} from '../sandbox/whatsapp.ts'

export const PHONE_NUMBER_ID = '100000000000002'
export const ACCESS_TOKEN = 'EAA-token-of-the-tests'
export const BUSINESS_ACCOUNT_ID = '100000000000001'

/** Changes to the provider's options and its default number. */
type CloudChanges = Partial<WhatsappCloudOptions> & {
  access_token?: string
  phone_number_id?: string
  account_id?: string | null
  messages_per_second?: number
  unknown_wait?: number
}

export type Cloud = WhatsappSandbox & {
  /** The dependencies with which a worker sends. */
  delivery: WhatsappDelivery
  /** The settings of a worker process. */
  env: Record<string, string>
}

export async function startCloud(
  t: Test,
  sandboxOptions: Partial<WhatsappSandboxOptions> = {},
  { unknown_wait = 600, ...changes }: CloudChanges = {},
): Promise<Cloud> {
  const sandbox = await startWhatsappSandbox({ port: 0, most: Number.POSITIVE_INFINITY, ...sandboxOptions })
  t.teardown(() => sandbox.close())
  const { url } = sandbox
  const { access_token = ACCESS_TOKEN, phone_number_id = PHONE_NUMBER_ID } = changes
  const { account_id = BUSINESS_ACCOUNT_ID, messages_per_second = 1_000, ...options } = changes
  return {
    ...sandbox,
    delivery: {
      provider: createWhatsappProvider({ url, ...options }),
      number: { access_token, phone_number_id, account_id, messages_per_second },
      unknown_wait,
      begin: async () => {},
    },
    env: {
      WHATSAPP_API_URL: url,
      WHATSAPP_ACCESS_TOKEN: ACCESS_TOKEN,
      WHATSAPP_PHONE_NUMBER_ID: PHONE_NUMBER_ID,
      WHATSAPP_MESSAGES_PER_SECOND: '1000',
    },
  }
}

/** Builds a complete and plain message for provider tests. A test states only what matters to it. */
export const outgoingWhatsapp = (changes: Partial<OutgoingWhatsapp> = {}): OutgoingWhatsapp => ({
  test: false,
  number: { phone_number_id: PHONE_NUMBER_ID, access_token: ACCESS_TOKEN },
  deferrals: 0,
  team_id: randomUUID(),
  message_id: randomUUID(),
  to: '+15555550101',
  template: { name: 'order_ready', language: 'en_US' },
  header: null,
  body: [{ name: null, value: 'Ana' }],
  buttons: [],
  ...changes,
})
