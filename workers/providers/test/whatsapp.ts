/**
 * Simulates the provider of test teams' WhatsApp messages: accepts them, and responds and reports by number
 * (whatsapp-magic-numbers.ts). DECISIONS: Test teams.
 */
import type { TakenReport } from '../../../db/delivery/reports/store.ts'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import type { WhatsappOutcome, WhatsappSending } from '../whatsapp/provider.ts'
import { type News, reportsOf, senderOf, type Taken } from './stored.ts'
import {
  FAULT_CODES,
  UNDELIVERABLE,
  type WhatsappReport,
  whatsappReply,
  whatsappReports,
} from './whatsapp-magic-numbers.ts'

const toCode = (fault: keyof typeof FAULT_CODES): string => String(FAULT_CODES[fault])

const FAILED = { detail: `${UNDELIVERABLE.details} (simulated)`, code: toCode('undeliverable') }

/**
 * A provider's rate limit concerns the sender. Here it concerns the message, because all test teams share one sender.
 */
const OUTCOMES = {
  undeliverable: { kind: 'refused', ...FAILED },
  'too fast': { kind: 'deferred', detail: 'Rate limit hit (simulated)', code: toCode('too fast') },
  'too many to it': {
    kind: 'deferred',
    detail: 'Pair rate limit hit (simulated)',
    code: toCode('too many to it'),
  },
} as const satisfies Record<Exclude<ReturnType<typeof whatsappReply>, 'taken'>, WhatsappOutcome>

export const SIMULATED_WHATSAPP: WhatsappSending<true> = {
  test: true,
  async send({ message_id, to, deferrals }) {
    const reply = whatsappReply(to, deferrals)
    if (reply !== 'taken') return OUTCOMES[reply]
    const detail = 'simulated: nothing is delivered'
    return { kind: 'accepted', detail, provider_message_id: `test-${message_id}` }
  },
}

export const SIMULATED_WHATSAPP_SENDER = senderOf('whatsapp')

export const reportsOfWhatsapp = (taken: Taken): TakenReport[] =>
  reportsOf('whatsapp', taken, whatsappReports(taken.to))

export const readWhatsapp = ({ team_id, id, event, time }: News<WhatsappReport>): ReportedEvent => ({
  channel: 'whatsapp',
  ref: { team_id, id },
  status: event,
  occurred_at: new Date(time),
  ...(event === 'failed' ? FAILED : { detail: '' }),
  event_key: `test:${event}:${time}`,
  provider_message_id: null,
  number: null,
})
