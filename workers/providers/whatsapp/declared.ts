/** WhatsApp, by Meta's Cloud API and one sending number. */
import { string } from 'yup'
import { cutPost } from '../../../db/messages/whatsapp/cut-post.ts'
import { recordDefaultNumber } from '../../../db/messages/whatsapp/numbers.ts'
import { commaList, isHttpUrl, type SettingsOf, wholeNumber } from '../../../db/process/config.ts'
import type { JobName } from '../../../db/queue/jobs.ts'
import type { DeclaredForChannel, ReaderContext } from '../declared.ts'
import { createWhatsappProvider } from './cloud.ts'
import type { WhatsappDelivery } from './provider.ts'
import { createWhatsappReportReader } from './reports.ts'

/** Meta's Graph API, with the version that the requests of cloud.ts are written for. */
const GRAPH_API = 'https://graph.facebook.com/v23.0'

const queues: readonly JobName[] = ['deliver-whatsapp', 'sync-whatsapp-templates']

const settings = {
  WHATSAPP_API_URL: string()
    .test('url', '${path} must be the http(s) URL of the Graph API, with its version', isHttpUrl)
    .default(GRAPH_API),
  /** Without it this worker leaves WhatsApp messages alone, unless WORKER_QUEUES names their queue. */
  WHATSAPP_ACCESS_TOKEN: string()
    .matches(
      /^[\x21-\x7e]+$/,
      '${path} must be printable ASCII characters without spaces or line breaks: it travels in a header',
    )
    .when('WORKER_QUEUES', ([named], schema) =>
      commaList(named).some((name) => (queues as readonly string[]).includes(name))
        ? schema.required('${path} is missing: WORKER_QUEUES names a queue of WhatsApp')
        : schema,
    ),
  WHATSAPP_PHONE_NUMBER_ID: string()
    .matches(/^[\w-]{1,64}$/, '${path} must be the id of the sending number')
    .when('WHATSAPP_ACCESS_TOKEN', ([token], schema) =>
      token ? schema.required('${path} is missing: the id of the sending number') : schema,
    ),
  /** The account whose templates `whatsapp-template sync` lists. */
  WHATSAPP_BUSINESS_ACCOUNT_ID: string().matches(/^[\w-]{1,64}$/, '${path} must be the id of the account'),
  /** What the sending number may do: 80 at first, up to 1,000 after the provider has raised it. */
  WHATSAPP_MESSAGES_PER_SECOND: wholeNumber(1, 10_000).default(80),
  /** When an answer was lost: how long to wait for a report before a second try, in seconds. */
  WHATSAPP_UNKNOWN_WAIT_SECONDS: wholeNumber(1, 86_400).default(600),
}

type Settings = SettingsOf<typeof settings>

function open(given: Settings): WhatsappDelivery | null {
  const { WHATSAPP_ACCESS_TOKEN: access_token, WHATSAPP_PHONE_NUMBER_ID: phone_number_id } = given
  if (!access_token || !phone_number_id) return null
  const provider = createWhatsappProvider({
    url: given.WHATSAPP_API_URL.replace(/\/$/, ''),
    access_token,
    phone_number_id,
    business_account_id: given.WHATSAPP_BUSINESS_ACCOUNT_ID,
    messages_per_second: given.WHATSAPP_MESSAGES_PER_SECOND,
  })
  const number = { phone_number_id, account_id: given.WHATSAPP_BUSINESS_ACCOUNT_ID ?? null }
  return {
    provider,
    unknown_wait: given.WHATSAPP_UNKNOWN_WAIT_SECONDS,
    begin: (database) => recordDefaultNumber(database, number),
  }
}

export const WHATSAPP = {
  name: 'whatsapp',
  settings,
  queues,
  isSet: ({ WHATSAPP_ACCESS_TOKEN }: Pick<Settings, 'WHATSAPP_ACCESS_TOKEN'>) =>
    Boolean(WHATSAPP_ACCESS_TOKEN),
  unset: 'WHATSAPP_ACCESS_TOKEN is not set: this worker leaves WhatsApp messages queued',
  open,
  reader: ({ settings: { WHATSAPP_BUSINESS_ACCOUNT_ID: account } }: ReaderContext<Settings>) =>
    createWhatsappReportReader(account ?? null),
  cut: cutPost,
} as const satisfies DeclaredForChannel
