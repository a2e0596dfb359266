/** Declares WhatsApp through Meta's Cloud API: the number of the settings, and the numbers in the database. */
import { string } from 'yup'
import { cutPost } from '../../../db/messages/whatsapp/cut-post.ts'
import { recordDefaultNumber } from '../../../db/messages/whatsapp/numbers.ts'
import { stopWordsSetting } from '../../../db/messages/whatsapp/stop-words.ts'
import {
  commaList,
  GRAPH_VERSION,
  graphApiSettings,
  graphApiUrl,
  type SettingsOf,
  wholeNumber,
} from '../../../db/process/config.ts'
import type { JobName } from '../../../db/queue/jobs.ts'
import { isOneOf } from '../../../db/validation/keys.ts'
import type { DeclaredForChannel } from '../declared.ts'
import { createWhatsappProvider } from './cloud.ts'
import type { WhatsappDelivery } from './provider.ts'
import { readWhatsappReport } from './reports.ts'

/**
 * When API versions end: two years after the release of the next one.
 * https://developers.facebook.com/docs/graph-api/guides/versioning
 */
const ENDS: Readonly<Record<string, string>> = {
  'v21.0': '2027-01-21',
  'v22.0': '2027-05-29',
  'v23.0': '2027-10-08',
}
const WARNING_MS = 180 * 24 * 3_600_000

const queues: readonly JobName[] = ['deliver-whatsapp', 'deliver-whatsapp-parts', 'sync-whatsapp-templates']

const settings = {
  ...graphApiSettings,
  /** The same as in web, so that a worker stops at what web would stop at. */
  WHATSAPP_STOP_WORDS: stopWordsSetting,
  /** Without it this worker doesn't send WhatsApp messages, unless WORKER_QUEUES names their queue. */
  WHATSAPP_ACCESS_TOKEN: string()
    .matches(
      /^[\x21-\x7e]+$/,
      '${path} must be printable ASCII characters without spaces or line breaks, because it is sent in a header',
    )
    .when('WORKER_QUEUES', ([named], schema) =>
      commaList(named).some((name) => isOneOf(queues, name))
        ? schema.required('${path} is missing: WORKER_QUEUES contains a WhatsApp queue')
        : schema,
    ),
  WHATSAPP_PHONE_NUMBER_ID: string()
    .matches(/^[\w-]{1,64}$/, '${path} must be the phone number ID of the sending number')
    .when('WHATSAPP_ACCESS_TOKEN', ([token], schema) =>
      token ? schema.required('${path} is missing: the phone number ID of the sending number') : schema,
    ),
  /** The account whose templates `whatsapp-template sync` lists. */
  WHATSAPP_BUSINESS_ACCOUNT_ID: string().matches(
    /^[\w-]{1,64}$/,
    '${path} must be the ID of the WhatsApp Business Account',
  ),
  /** The sending number's limit: 80 at first, up to 1,000 once the provider has raised it. */
  WHATSAPP_MESSAGES_PER_SECOND: wholeNumber(1, 10_000).default(80),
}

type Settings = SettingsOf<typeof settings>

/** How long a retry waits for a report after a lost response. */
const UNKNOWN_WAIT_S = 600

/** Returns a warning if the version of the Graph API ends soon, or null. */
function versionWarning(given: Settings, now: Date): string | null {
  if (!given.WHATSAPP_ACCESS_TOKEN) return null
  const version = graphApiUrl(given).split('/').at(-1) ?? ''
  const end = Object.hasOwn(ENDS, version) ? ENDS[version] : undefined
  if (end === undefined || Date.parse(end) - now.getTime() > WARNING_MS) return null
  return `Meta retires version ${version} of the Graph API on ${end}. Set WHATSAPP_API_VERSION to a newer one, such as ${GRAPH_VERSION}.`
}

function open(given: Settings): WhatsappDelivery {
  const { WHATSAPP_ACCESS_TOKEN: access_token, WHATSAPP_PHONE_NUMBER_ID: phone_number_id } = given
  const account_id = given.WHATSAPP_BUSINESS_ACCOUNT_ID ?? null
  const isSet = access_token !== undefined && phone_number_id !== undefined
  return {
    provider: createWhatsappProvider({ url: graphApiUrl(given) }),
    unknown_wait: UNKNOWN_WAIT_S,
    number: isSet
      ? {
          ...{ access_token, phone_number_id, account_id },
          messages_per_second: given.WHATSAPP_MESSAGES_PER_SECOND,
        }
      : null,
    begin: async (database) => {
      if (isSet) await recordDefaultNumber(database, { phone_number_id, account_id })
    },
  }
}

export const WHATSAPP = {
  name: 'whatsapp',
  settings,
  queues,
  isSet: ({ WHATSAPP_ACCESS_TOKEN }: Pick<Settings, 'WHATSAPP_ACCESS_TOKEN'>) =>
    Boolean(WHATSAPP_ACCESS_TOKEN),
  unset:
    'WHATSAPP_ACCESS_TOKEN is not set, so this worker sends no WhatsApp messages from the default number',
  open,
  reader: () => readWhatsappReport,
  cut: (body) => cutPost(body),
  warning: versionWarning,
} as const satisfies DeclaredForChannel

export const WHATSAPP_NUMBERS = { name: 'whatsapp-number', reader: () => readWhatsappReport } as const
