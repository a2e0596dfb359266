/**
 * Every provider. To add one: a folder beside this file whose declared.ts says what it is, a line here, its name among
 * its channel's (db/channels/), and the hook that takes its reports.
 */
import { SES } from './ses/declared.ts'
import { SMTP } from './smtp/declared.ts'
import { WHATSAPP, WHATSAPP_NUMBERS } from './whatsapp/declared.ts'

export const EMAIL_PROVIDERS = [SMTP, SES] as const

/** What other channels go out through, under the names that their deliveries know them by. */
export const CHANNEL_PROVIDERS = { whatsapp: WHATSAPP } as const

/** Whose reports have a name of their own. */
export const OTHER_REPORTERS = [WHATSAPP_NUMBERS] as const

type ChannelProviders = typeof CHANNEL_PROVIDERS
/** The providers that a process has opened; null for one that it is not set up for. */
export type OpenProviders = { [N in keyof ChannelProviders]: ReturnType<ChannelProviders[N]['open']> }
