/**
 * The transactional counter behind the quota equals a recount, whatever happened; no request
 * counts rows. DECISIONS: Quota.
 */
import fc from 'fast-check'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { usageIn } from '../../db/accounts/teams/usage.sql.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { emailsFound } from '../../db/messages/emails/find.sql.ts'
import { removeEmail } from '../../db/messages/emails/remove.ts'
import { stopClock } from '../support/clock.ts'
import { anEmail, makeTeam, startService, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'

let now = new Date('2027-01-31T22:00:00.000Z')
const service = await startService(t)
await stopClock(service.database, now)

const email = fc.record({
  key: fc.constantFrom(undefined, 'a', 'b', 'c'),
  from: fc.constantFrom('hello@example.com', 'hello@example.net', 'nobody'),
})
const step = fc.oneof(
  fc.record({ kind: fc.constant('send' as const), email }),
  fc.record({ kind: fc.constant('batch' as const), emails: fc.array(email, { maxLength: 5 }) }),
  fc.record({ kind: fc.constant('delete' as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 500 }) }),
  fc.record({
    kind: fc.constant('subscribe' as const),
    plan: fc.constantFrom('free', 'pro'),
    days: fc.integer({ min: 1, max: 40 }),
  }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

const bodyOf = ({ key, from }: { key: string | undefined; from: string }) =>
  anEmail({ from, ...(key === undefined ? {} : { idempotency_key: key }) })

async function take(team: TestTeam, todo: Step): Promise<void> {
  const { call, database } = service
  if (todo.kind === 'send') await call('POST', '/v1/emails', { key: team.key, body: bodyOf(todo.email) })
  if (todo.kind === 'batch') {
    await call('POST', '/v1/emails/batch', { key: team.key, body: { emails: todo.emails.map(bodyOf) } })
  }
  if (todo.kind === 'wait') {
    now = new Date(now.getTime() + todo.hours * 3_600_000)
    await stopClock(database, now)
  }
  if (todo.kind === 'delete') {
    const rows = await emailsFound(database, { team_id: team.id }, { limit: 100 })
    const row = rows[todo.pick % Math.max(1, rows.length)]
    if (row)
      await database.transaction(
        async (tx) => void (await removeEmail({ tx, now: new Date(), actor: null }, team.id, row.id)),
      )
  }
  if (todo.kind === 'subscribe') {
    const period = {
      start: new Date(now.getTime() - todo.days * 86_400_000),
      end: new Date(now.getTime() + 86_400_000),
    }
    await database.transaction(
      async (tx) =>
        void (await subscribeTeam({ tx, now: new Date(), actor: null }, team.id, {
          plan: todo.plan,
          period,
        })),
    )
  }
}

t.test('after any mix of sends, failures, replays, deletes, waits and period changes', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const team = await makeTeam(service, { plan: 'free', email_limit: 4, rate: 1 })
      for (const todo of steps) {
        await take(team, todo)
        const { used, period } = await showTeam(service.database, team.id)
        const { emails: stored } = await usageIn(service.database, team.id, {
          start: new Date(period.start),
          end: new Date(period.end),
        })
        if (used.emails !== stored) {
          throw new Error(`counted ${used.emails}, stored ${stored} after ${JSON.stringify(steps)}`)
        }
      }
    }),
    { numRuns: 15 },
  )
  t.pass('15 runs')
})
