/**
 * Simulates the provider of test teams' email: accepts it, and responds and reports by recipient (magic-recipients.ts).
 * It never opens a connection. A repeated report has the same bytes and, made from them, the same key. Its types
 * exclude emails of live teams, as other providers' types exclude those of test teams. DECISIONS: Test teams.
 */
import type { TakenReport } from '../../../db/delivery/reports/store.ts'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import type { EmailProvider, Outcome } from '../provider.ts'
import { type EmailReport, emailReply, emailReports } from './magic-recipients.ts'
import { type News, reportsOf, senderOf, type Taken } from './stored.ts'

const OUTCOMES = {
  taken: { kind: 'accepted', detail: '250 2.0.0 Simulated: nothing is delivered' },
  deferred: { kind: 'deferred', detail: '451 4.3.0 Try again later (simulated)' },
  refused: { kind: 'refused', detail: '550 5.1.1 No such mailbox (simulated)', effect: 'hard' },
} as const satisfies Record<ReturnType<typeof emailReply>, Outcome>

export const SIMULATED_EMAIL: EmailProvider<true> = {
  test: true,
  signs: false,
  bufferedCopies: 1,
  async send({ email_id, recipients, deferrals }) {
    const outcomes = new Map(recipients.map((to) => [to, OUTCOMES[emailReply(to, deferrals)]]))
    const isTaken = [...outcomes.values()].some(({ kind }) => kind === 'accepted')
    return { provider_message_id: isTaken ? `test-${email_id}` : null, outcomes }
  },
  sender: async () => senderOf('email'),
  check: async () => null,
  close: async () => {},
}

/** Returns the reports of an email accepted for this recipient. An ordinary one is delivered. */
export const reportsOfEmail = (taken: Taken): TakenReport[] =>
  reportsOf('email', taken, emailReports(taken.to) ?? ['delivered'])

const EFFECTS = {
  delivered: 'delivered',
  bounced: 'hard',
  complained: 'complaint',
  opened: 'none',
  clicked: 'none',
} as const satisfies Record<EmailReport, string>

const BOUNCE = '550 5.1.1 The mailbox does not exist (simulated)'

export const readEmail = ({ team_id, id, to, event, time }: News<EmailReport>): ReportedEvent => ({
  channel: 'email',
  ref: { team_id, id },
  kind: event,
  recipient: to,
  occurred_at: new Date(time),
  detail: event === 'bounced' ? BOUNCE : '',
  event_key: `test:${event}:${time}:${to}`,
  provider_message_id: null,
  effect: EFFECTS[event],
})
