/** Chooses the delivery queue of an accepted message. The channel's job_of does the same for a stored one. */
import { fromKeys } from '../validation/keys.ts'
import { EMAIL_FACTS } from './email.ts'
import type { LineName } from './list.ts'
import { WHATSAPP_FACTS } from './whatsapp.ts'

const LIVE = {
  email: 'deliver-email',
  email_batch: 'deliver-email',
  broadcast: 'deliver-broadcast',
  whatsapp: 'deliver-whatsapp',
  whatsapp_batch: 'deliver-whatsapp',
  whatsapp_parts: 'deliver-whatsapp-parts',
  whatsapp_parts_batch: 'deliver-whatsapp-parts',
} as const satisfies Record<LineName, string>

const TEST = {
  ...fromKeys(EMAIL_FACTS.lines, () => 'deliver-test' as const),
  ...fromKeys(WHATSAPP_FACTS.lines, () => 'deliver-test-whatsapp' as const),
}

/** For teams with their own WhatsApp number. */
const NUMBERED = { ...LIVE, ...fromKeys(WHATSAPP_FACTS.lines, () => 'deliver-whatsapp-number' as const) }

/**
 * @param of the message's team and number (null: the default one). A test team's messages are never in a provider's
 * queue.
 */
export const queueOf = <L extends LineName>(
  line: L,
  { test, number }: { test: boolean; number: unknown },
) => {
  if (test) return TEST[line]
  return number === null ? LIVE[line] : NUMBERED[line]
}
