/**
 * Sends emails of test teams, broadcasts included, to the simulator. The simulator's report is stored raw, with a
 * job, in the transaction that records the acceptance, as a hook would store it. This module must never get a
 * provider. DECISIONS: Test teams.
 */
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import { TEST_EMAIL } from '../../db/channels/email.sql.ts'
import { storeReports, type TakenReport } from '../../db/delivery/reports/store.ts'
import type { Producer } from '../../db/queue/producer.ts'
import type { Delivered, DeliveryChannel } from '../delivery/channel.ts'
import { reportsOfEmail, SIMULATED_EMAIL } from '../providers/test/simulator.ts'
import { withFinalCheck } from './deliver-broadcast.ts'
import type { EmailDeps } from './deliver-email.ts'

export type Reporting = { queue: Pick<Producer, 'enqueue'> }

/** Extends a channel so that its records store the reports of accepted messages. */
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

export const testEmailChannel = (deps: Omit<EmailDeps, 'email'> & Reporting) =>
  reporting(
    withFinalCheck(TEST_EMAIL, { ...deps, email: SIMULATED_EMAIL, simulated_recipients: true }),
    deps,
    ({ answer: { row, delivery }, at }) =>
      [...delivery.outcomes].flatMap(([to, { kind }]) =>
        kind === 'accepted' ? reportsOfEmail({ team_id: row.team_id, id: row.id, to, at }) : [],
      ),
  )
