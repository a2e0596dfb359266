/**
 * Concurrent calls of any kind keep the counters of quotas equal to a recount and within the limits. The
 * bucket never grants more than its capacity plus the refill. No request counts rows. DECISIONS: Quota.
 */
import fc from 'fast-check'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { usageIn } from '../../db/accounts/teams/usage.sql.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { requeueOne } from '../../db/delivery/requeue.ts'
import { RequestError } from '../../db/errors.ts'
import { removeEmail } from '../../db/messages/emails/remove.ts'
import { emailsFound } from '../../db/messages/emails/search.sql.ts'
import { stopClock } from '../support/clock.ts'
import { anEmail, makeTeam, startService, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, makeTemplate, numbers } from '../support/whatsapp.ts'

/** Rarely reached, so that the bucket is. */
const MANY = 1_000
const RATE = 1
const CAPACITY = 5
const START = new Date('2027-01-31T22:00:00.000Z')

const service = await startService(t)
const { call, database, deps } = service

const email = fc.record({
  key: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined, freq: 2 }),
  from: fc.oneof(
    { weight: 5, arbitrary: fc.constant('hello@example.com') },
    { weight: 1, arbitrary: fc.constantFrom('hello@example.net', 'nobody') },
  ),
})
const step = fc.oneof(
  fc.record({ kind: fc.constant('send' as const), email }),
  fc.record({ kind: fc.constant('batch' as const), emails: fc.array(email, { minLength: 1, maxLength: 8 }) }),
  fc.record({ kind: fc.constant('whatsapp' as const), numbers: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constantFrom('delete' as const, 'requeue' as const), pick: fc.nat() }),
  fc.record({
    kind: fc.constant('subscribe' as const),
    plan: fc.constantFrom('free', 'pro'),
    days: fc.integer({ min: 1, max: 40 }),
  }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never
const round = fc.record({
  seconds: fc.oneof({ weight: 2, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.nat(1_800_000) }),
  together: fc.array(step, { minLength: 1, maxLength: 4 }),
})

/** A run that reaches both quotas, whatever is generated. */
const FULL: [{ email_limit: number; whatsapp_limit: number }, { seconds: number; together: Step[] }[]] = [
  { email_limit: 4, whatsapp_limit: 3 },
  [
    {
      seconds: 0,
      together: [{ kind: 'batch', emails: Array(4).fill({ key: undefined, from: 'hello@example.com' }) }],
    },
    { seconds: 0, together: [{ kind: 'whatsapp', numbers: 3 }] },
    { seconds: 1, together: [{ kind: 'whatsapp', numbers: 1 }] },
  ],
]

const bodyOf = ({ key, from }: { key: string | undefined; from: string }) =>
  anEmail({ from, ...(key === undefined ? {} : { idempotency_key: key }) })

type Limits = { email_limit: number; whatsapp_limit: number }
type Team = TestTeam & { template: string; limits: Limits }

/** Runs one step. @returns how many emails it deleted */
async function take(team: Team, todo: Step, now: Date): Promise<number> {
  const { key } = team
  if (todo.kind === 'send') await call('POST', '/v1/emails', { key, body: bodyOf(todo.email) })
  else if (todo.kind === 'batch')
    await call('POST', '/v1/emails/batch', { key, body: { emails: todo.emails.map(bodyOf) } })
  else if (todo.kind === 'whatsapp')
    await call('POST', '/v1/whatsapp/messages', {
      key,
      body: aMessage(team.template, { to: numbers(todo.numbers) }),
    })
  else if (todo.kind === 'subscribe') {
    const period = { start: new Date(now.getTime() - todo.days * 86_400_000), end: after(now, 86_400) }
    const figures = { ...team.limits, plan: todo.plan, send_rate_per_second: RATE, period }
    await database.transaction((tx) => subscribeTeam({ tx, now, actor: null }, team.id, figures))
  } else {
    const rows = await emailsFound(database, { team_id: team.id }, { limit: 100 })
    const row = rows[todo.pick % Math.max(1, rows.length)]
    if (!row) return 0
    const ref = { team_id: team.id, id: row.id }
    const act = database.transaction<unknown>((tx) =>
      todo.kind === 'delete'
        ? removeEmail({ tx, now, actor: null }, team.id, row.id)
        : requeueOne({ tx, now, actor: 'cli', queue: deps.queue }, EMAIL, ref, { force: false }),
    )
    const isDone = await act.then(
      () => true,
      (error) => (error instanceof RequestError ? false : Promise.reject(error)),
    )
    return isDone && todo.kind === 'delete' ? 1 : 0
  }
  return 0
}

const after = (time: Date, seconds: number): Date => new Date(time.getTime() + seconds * 1_000)

const recount = async (team: TestTeam, { start, end }: { start: string; end: string }) =>
  await usageIn(database, team.id, { start: new Date(start), end: new Date(end) })

t.test('counters stay exact in concurrent calls and across periods', async (t) => {
  let reached = 0
  const limited = fc.constantFrom(
    { email_limit: 4, whatsapp_limit: 3 },
    { email_limit: MANY, whatsapp_limit: 3 },
  )
  await fc.assert(
    fc.asyncProperty(limited, fc.array(round, { minLength: 3, maxLength: 8 }), async (limits, rounds) => {
      let now = START
      await stopClock(database, now)
      const made = await makeTeam(service, { ...limits, plan: 'free', rate: RATE })
      const team = { ...made, limits, template: (await makeTemplate(service, made.id)).id }
      let [deleted, granted, before] = [0, 0, { emails: 0, whatsapp: 0 }]
      /** The time before each round, and the emails granted until then. */
      const looks: { at: number; granted: number }[] = []
      for (const { seconds, together } of rounds) {
        now = after(now, seconds)
        await stopClock(database, now)
        looks.push({ at: now.getTime(), granted })
        const gone = await Promise.all(together.map((todo) => take(team, todo, now)))
        deleted += gone.reduce((sum, one) => sum + one, 0)
        const { used, period } = await showTeam(database, team.id)
        const stored = await recount(team, period)
        for (const [quota, limit] of [
          ['emails', limits.email_limit],
          ['whatsapp', limits.whatsapp_limit],
        ] as const) {
          if (used[quota] !== stored[quota])
            throw new Error(`${quota}: counted ${used[quota]}, stored ${stored[quota]}`)
          // A moved period also counts rows stored before the move.
          if (
            !together.some(({ kind }) => kind === 'subscribe') &&
            used[quota] > Math.max(limit, before[quota])
          )
            throw new Error(`${quota}: ${used[quota]} of ${limit}, ${before[quota]} before`)
          if (used[quota] === limit) reached++
        }
        granted = (await recount(team, { start: '2000-01-01', end: '2100-01-01' })).emails + deleted
        for (const look of looks)
          if (granted - look.granted > CAPACITY + (RATE * (now.getTime() - look.at)) / 1_000)
            throw new Error(`${granted - look.granted} emails granted in ${now.getTime() - look.at} ms`)
        before = used
      }
    }),
    { numRuns: 21, examples: [FULL] },
  )
  t.ok(reached > 3, `a quota was reached ${reached} times`)
})
