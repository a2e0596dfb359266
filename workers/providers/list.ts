/**
 * Lists every provider. To add one, add a folder next to this file with a declared.ts, a line here, its name in its
 * channel (db/channels/), and the hook that accepts its reports.
 */
import { SES } from './ses/declared.ts'
import { SMTP } from './smtp/declared.ts'
import { WHATSAPP, WHATSAPP_NUMBERS } from './whatsapp/declared.ts'

export const EMAIL_PROVIDERS = [SMTP, SES] as const

export const CHANNEL_PROVIDERS = { whatsapp: WHATSAPP } as const

/** Providers whose reports have a separate name. */
export const OTHER_REPORTERS = [WHATSAPP_NUMBERS] as const

type ChannelProviders = typeof CHANNEL_PROVIDERS
/** The providers that a process has opened. Null if it isn't configured for one. */
export type OpenProviders = { [N in keyof ChannelProviders]: ReturnType<ChannelProviders[N]['open']> }
