/** Sends messages of the default number with media or named variables. Version 0.1.0 has no such queue. */
import { PARTS_WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import { ofDefaultNumber, type WhatsappAttempt, type WhatsappDeps } from './deliver-whatsapp.ts'

export const partsWhatsappChannel = (
  deps: WhatsappDeps,
): DeliveryChannel<'deliver-whatsapp-parts', WhatsappAttempt> => ofDefaultNumber(PARTS_WHATSAPP, deps)
