/** Every channel's facts. To add a channel: its facts here, its tables in channels.sql.ts. Pure. */
import { EMAIL_FACTS } from './email.ts'
import { WHATSAPP_FACTS } from './whatsapp.ts'

export const CHANNEL_FACTS = [EMAIL_FACTS, WHATSAPP_FACTS] as const

export type ChannelFacts = (typeof CHANNEL_FACTS)[number]
export type ChannelName = ChannelFacts['name']

export type LineName = ChannelFacts['lines'][number]
/** The lanes of all channels (db/queue/fair-queue.ts). */
export const LINES = CHANNEL_FACTS.flatMap(({ lines }): readonly LineName[] => lines)
