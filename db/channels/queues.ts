/** Chooses the delivery queue of an accepted message. The channel's job_of does the same for a stored one. */
import type { LineName } from './list.ts'

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
  email: 'deliver-test',
  email_batch: 'deliver-test',
  broadcast: 'deliver-test',
  whatsapp: 'deliver-test-whatsapp',
  whatsapp_batch: 'deliver-test-whatsapp',
  whatsapp_parts: 'deliver-test-whatsapp',
  whatsapp_parts_batch: 'deliver-test-whatsapp',
} as const satisfies Record<LineName, string>

/** For teams with their own WhatsApp number. */
const NUMBERED = {
  ...LIVE,
  whatsapp: 'deliver-whatsapp-number',
  whatsapp_batch: 'deliver-whatsapp-number',
  whatsapp_parts: 'deliver-whatsapp-number',
  whatsapp_parts_batch: 'deliver-whatsapp-number',
} as const satisfies Record<LineName, string>

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
