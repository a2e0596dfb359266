/** Reports in any order, any number of times and in any transactions lead to the same state. */
import fc from 'fast-check'
import { applyReportedWhatsapp, type ReportedStatus } from '../../../../db/messages/whatsapp/apply-events.ts'
import { eventsOfMessage } from '../../../../db/messages/whatsapp/events.sql.ts'
import { higherStatus, type WhatsappStatus } from '../../../../db/messages/whatsapp/status.ts'
import { world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { makeTemplate, numbers, rowsOf, sendWhatsapp } from '../../../support/whatsapp.ts'

const { service, database, team } = await world(t)
const template = await makeTemplate(service, team.id)

t.test('concurrent events end the same in any order and split', async () => {
  const STATUSES = ['sent', 'delivered', 'read', 'failed'] as const
  const event = fc.record({ row: fc.nat(3), status: fc.constantFrom(...STATUSES), copy: fc.nat(1) })
  const runs = fc
    .array(event, { minLength: 1, maxLength: 30 })
    .chain((events) =>
      fc.record({
        events: fc.constant(events),
        order: fc.shuffledSubarray([...events, ...events], { minLength: events.length * 2 }),
        lanes: fc.array(fc.nat(3), { minLength: 60, maxLength: 60 }),
      }),
    )
  await fc.assert(
    fc.asyncProperty(runs, async ({ events, order, lanes }) => {
      const ids = await sendWhatsapp(service, team, template.id, { to: numbers(4) })
      const make = ({ row, status, copy }: (typeof events)[number]): ReportedStatus => ({
        ref: { team_id: team.id, id: ids[row] ?? '' },
        ...{ status, occurred_at: new Date(1_750_000_000_000), detail: '' },
        provider_message_id: `wamid.${ids[row]}`,
        number: null,
        event_key: `${row}:${status}:${copy}`,
      })
      const apply = (batch: ReportedStatus[]) =>
        database.transaction((tx) => applyReportedWhatsapp(tx, batch, new Date()))
      const batches = [0, 1, 2, 3].map((lane) => order.filter((_, index) => lanes[index] === lane).map(make))
      await Promise.all(batches.map(apply))
      for (const [row, id] of ids.entries()) {
        const own = events.filter((one) => one.row === row)
        const expected = own.reduce<WhatsappStatus>(
          (status, one) => higherStatus(status, one.status),
          'queued',
        )
        const keys = new Set(own.map(({ status, copy }) => `${status}:${copy}`))
        if ((await rowsOf(service, team.id)).find((one) => one.id === id)?.status !== expected) return false
        if ((await eventsOfMessage(database, team.id, id)).length !== keys.size) return false
      }
      return true
    }),
    { numRuns: 12 },
  )
})
