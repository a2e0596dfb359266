/**
 * Emails of test teams on their way to the simulator, those of broadcasts too: read, judged and recorded as those of
 * live teams are. Promises: what the simulator reports of an email is stored in the transaction that records that it
 * was taken, raw and with a job, as a hook would; then it is read as any provider's. Must not be handed a provider.
 * DECISIONS: Test teams.
 */
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import { TEST_EMAIL } from '../../db/channels/email.sql.ts'
import { storeReports, type TakenReport } from '../../db/delivery/reports/store.ts'
import type { Producer } from '../../db/queue/producer.ts'
import type { Delivered, DeliveryChannel } from '../delivery/channel.ts'
import { reportsOfEmail, SIMULATED_EMAIL } from '../providers/test/simulator.ts'
import { withFinalCheck } from './deliver-broadcast.ts'
import type { EmailDeps } from './deliver-email.ts'
import type { EmailAttempt } from './email-attempts.ts'

export type Reporting = { queue: Pick<Producer, 'enqueue'> }

/** The channel, whose records bring the reports of what was taken. */
export const reporting = <J extends DeliveryJob, A>(
  channel: DeliveryChannel<J, A>,
  { queue }: Reporting,
  reportsOf: (one: Delivered<A>) => TakenReport[],
): DeliveryChannel<J, A> => ({
  ...channel,
  async record(tx, delivered) {
    await channel.record(tx, delivered)
    const reports = delivered.flatMap(reportsOf)
    if (reports.length > 0) await storeReports({ tx, queue }, reports)
  },
})

export const testEmailChannel = (
  deps: Omit<EmailDeps, 'email'> & Reporting,
): DeliveryChannel<'deliver-test', EmailAttempt> =>
  reporting(
    withFinalCheck(TEST_EMAIL, { ...deps, email: SIMULATED_EMAIL, simulated_recipients: true }),
    deps,
    ({ answer: { row, delivery }, at }) =>
      [...delivery.outcomes].flatMap(([to, { kind }]) =>
        kind === 'accepted' ? reportsOfEmail({ team_id: row.team_id, id: row.id, to, at }) : [],
      ),
  )
