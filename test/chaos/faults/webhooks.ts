/** Webhooks whose workers and receiver are killed: each event is received, or is marked as failed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import { addEndpoint } from '../../../db/messages/webhooks/endpoints.ts'
import { networksIn } from '../../../db/process/public-address.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { storeEmails } from '../../support/reports.ts'
import type { TestTeam } from '../../support/service.ts'
import { type Customer, startCustomer } from '../customer.ts'
import { type Fault, inTurn, meanwhile, type Outcome } from '../fault.ts'
import { type World, within } from '../world.ts'

/** The setting that allows webhooks to a receiver on this machine. */
export const NEIGHBOURLY = { WEBHOOK_ALLOW: '127.0.0.0/8' }

const KINDS: readonly EmailEventKind[] = ['sent', 'delivered', 'opened', 'clicked']
/** Emails that get an event in one transaction. */
const BATCH = 50
/** Requests that a worker has in flight, plus as many whose responses it hasn't stored yet. */
const IN_HAND = 64

/** Creates an endpoint for all events of a team. */
const subscribe = ({ database }: World, { id }: TestTeam, { url }: Customer) =>
  database.transaction((tx) => {
    const by = { tx, now: new Date(), actor: 'chaos', secrets: createSecrets(SECRET_KEY) }
    return addEndpoint({ ...by, allowed: networksIn(['127.0.0.0/8']) }, id, { url })
  })

/** Stores a number of events of a team's emails, one transaction after another. */
async function happenTo({ database }: World, { id: team_id }: TestTeam, events: number): Promise<void> {
  for (let done = 0; done < events; ) {
    const emails = Math.min(BATCH, Math.ceil((events - done) / KINDS.length))
    const ids = await storeEmails({ database }, team_id, Array(emails).fill(['a@example.org']))
    for (const kind of KINDS) {
      const event = { team_id, kind, recipient: null, event_key: kind, detail: '' }
      const all = ids.map((email_id) => ({ ...event, email_id, occurred_at: new Date() }))
      await database.transaction((tx) => applyEmailEvents(tx, all, new Date()))
      done += all.length
    }
  }
}

type Row = { event_id: string | null; status: string | null; body: string | null }

/** Returns each event, with its webhook message if it has one. */
const happened = (world: World, { id }: TestTeam) =>
  world.sql<Row>(
    `select m.event_id, m.status, m.body
    from email_events e left join webhook_messages m
      on m.team_id = e.team_id and m.subject_id = e.email_id and m.type = 'email.' || e.kind
    where e.team_id = $1`,
    [id],
  )

/** Makes deferred webhooks due, because a test can't wait five minutes. */
const hurry = ({ sql }: World) =>
  sql(`update pgboss.job set start_after = now() where name = 'deliver-webhook' and state < 'active'`)

/** Returns the results of all events, once none is waiting. */
async function endOf(world: World, team: TestTeam, customer: Customer, kills: number): Promise<Outcome> {
  const ended = performance.now()
  const isOver = await within(300, async () => {
    await hurry(world)
    const waiting = await world.sql('select 1 from webhook_messages where team_id = $1 and unfinished', [
      team.id,
    ])
    return waiting.length === 0
  })
  const recovered = isOver ? (performance.now() - ended) / 1_000 : null
  const rows = await happened(world, team)
  const copiesOf = ({ event_id }: Row) => customer.copies.get(event_id ?? '') ?? []
  const count = (holds: (row: Row) => boolean) => rows.filter(holds).length
  const sum = (of: (row: Row) => number) => rows.reduce((all, row) => all + of(row), 0)
  const failed = count(({ status }) => status === 'failed')
  const afterAnswer = (row: Row): number => {
    const first = copiesOf(row).findIndex(({ answered }) => answered)
    return first < 0 ? 0 : copiesOf(row).length - 1 - first
  }
  return {
    accepted: rows.length,
    lost: count((row) => row.status !== 'failed' && copiesOf(row).length === 0),
    repeated: sum((row) => Math.max(0, copiesOf(row).length - 1)),
    after_answer: sum(afterAnswer),
    // Events wrongly marked as delivered, bytes that differ from the stored ones, and undescribed events.
    over:
      customer.undescribed.size +
      count((row) => row.status === 'delivered' && !copiesOf(row).some(({ answered }) => answered)) +
      count((row) => copiesOf(row).some(({ body }) => body !== row.body)),
    recovered,
    allowed: kills * IN_HAND,
    limit: 300,
    note: [`${failed} failed; ${kills} kills of a worker`, ...customer.undescribed.values()]
      .slice(0, 2)
      .join('; '),
  }
}

export const webhookFaults: readonly Fault[] = [
  {
    id: 'I/webhooks',
    words: 'webhooks: kill -9 of a worker every 3 s, and of the receiver every 2 s',
    load: '10,000 events',
    world: { env: NEIGHBOURLY },
    async run(world, scale) {
      const team = await world.team()
      const customer = await startCustomer()
      try {
        await subscribe(world, team, customer)
        let over = false
        const receiver = (async () => {
          while (!over) {
            await sleep(2_000)
            await customer.kill(300)
          }
        })()
        const work = happenTo(world, team, 10_000 * scale).then(() =>
          within(600, async () => {
            await hurry(world)
            return customer.copies.size >= 10_000 * scale * 0.9
          }),
        )
        // One worker always stays up, even if the other starts slowly.
        const kill = (nth: number) =>
          world.workers.every((worker) => worker.isUp()) && inTurn(world.workers, nth).signal('SIGKILL')
        // Only a few events are delivered within three seconds.
        const first = within(60, async () => customer.copies.size > 0).then(() => kill(0))
        const { strikes } = await meanwhile(work, 3_000, (nth) => kill(nth + 1)).finally(async () => {
          over = true
          await receiver
        })
        await first
        return await endOf(world, team, customer, strikes + 1)
      } finally {
        await customer.close()
      }
    },
  },
]
