/** The effect of plan changes on a team's account: periods, counts and buckets. */
import fc from 'fast-check'
import { sql } from 'slonik'
import { type SubscriptionChange, subscribeTeam } from '../../../../db/accounts/teams/subscribe.ts'
import { usageIn } from '../../../../db/accounts/teams/usage.sql.ts'
import { showTeam } from '../../../../db/accounts/teams/view.ts'
import { removeEmail } from '../../../../db/messages/emails/remove.ts'
import { stopClock } from '../../../support/clock.ts'
import { byCli } from '../../../support/service.ts'
import { openStore, type Store } from '../../../support/stored-emails.ts'
import t, { type Test } from '../../../support/tap.ts'

const day = (text: string): Date => new Date(`${text}T00:00:00Z`)
const period = (start: string, end: string) => ({ start: day(start), end: day(end) })

const subscribe = async ({ database }: Store, teamId: string, change: SubscriptionChange) =>
  await database.transaction((tx) => subscribeTeam(byCli(tx), teamId, change))

/** A store with a stopped clock, and a function that sets it. */
async function storeAt(t: Test, time: Date) {
  const store = await openStore(t)
  const at = (later: Date) => stopClock(store.database, later)
  await at(time)
  return { store, at }
}

t.test('a plan change within the period keeps the usage', async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('free')
  await store.email(id)
  await store.email(id)
  const view = await subscribe(store, id, { plan: 'enterprise' })
  t.match(view, {
    plan: 'enterprise',
    used: { emails: 2 },
    left: { emails: null },
    bucket: { tokens: 3, capacity: 50 },
  })
  t.match(view.period, { start: '2026-02-01T00:00:00.000Z', end: '2026-03-01T00:00:00.000Z' })
})

t.test('a moved period is counted again from the stored emails', async (t) => {
  const { store, at } = await storeAt(t, day('2026-01-20'))
  const id = await store.team('free')
  for (const date of ['2026-01-20', '2026-01-31', '2026-02-01', '2026-02-09'])
    await store.email(id, day(date))
  await at(day('2026-02-10'))
  t.match(await showTeam(store.database, id), { used: { emails: 2 } })
  const moved = await subscribe(store, id, { plan: 'pro', period: period('2026-01-31', '2026-02-28') })
  t.match(moved, { used: { emails: 3 }, period: { start: '2026-01-31T00:00:00.000Z' } })
  t.match(await showTeam(store.database, id), { used: { emails: 3 } })
  t.match(await subscribe(store, id, { plan: 'pro', period: period('2026-02-09', '2026-03-09') }), {
    used: { emails: 1 },
  })
  const back = await subscribe(store, id, { plan: 'free' })
  t.match(back, { used: { emails: 2 }, period: { start: '2026-02-01T00:00:00.000Z' } }, 'by calendar month')
  const again = await subscribe(store, id, { plan: 'pro' })
  t.match(again, { used: { emails: 1 }, period: { start: '2026-02-09T00:00:00.000Z' } }, 'the paid period')
})

t.test('changes a limit without changing the plan', async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('pro')
  t.match(await showTeam(store.database, id), { limits: { emails: 50_000, contacts: 5_000 } })
  const own = await subscribe(store, id, { contact_limit: 7 })
  t.match(own, { plan: 'pro', limits: { emails: 50_000, contacts: 7 } })
  t.match(await subscribe(store, id, { send_rate_per_second: 3 }), { limits: { contacts: 7, rate: 3 } })
  t.match(await subscribe(store, id, { plan: 'enterprise' }), { limits: { contacts: null, rate: 10 } })
  await store.database.query(sql.unsafe`update plans set contacts_tiers = null`)
  t.match(await subscribe(store, id, { plan: 'pro' }), { limits: { contacts: null } }, 'a plan without rungs')
})

t.test('a monthly period rolls over by calendar months', async (t) => {
  const { store, at } = await storeAt(t, day('2026-01-20'))
  const id = await store.team('pro')
  await at(day('2026-03-01'))
  const view = await subscribe(store, id, { plan: 'pro', period: period('2026-01-31', '2026-02-28') })
  t.same(view.period, { start: '2026-02-28T00:00:00.000Z', end: '2026-03-31T00:00:00.000Z' })
})

t.test('limits the bucket to its new capacity and rate', async (t) => {
  const now = day('2026-02-10')
  const { store, at } = await storeAt(t, now)
  const id = await store.team('pro')
  t.match(await showTeam(store.database, id), { bucket: { tokens: 50, capacity: 50 } })
  t.match(await subscribe(store, id, { plan: 'free' }), { bucket: { tokens: 5, capacity: 5 } })
  t.match(await subscribe(store, id, { plan: 'free', send_rate_per_second: 20 }), {
    bucket: { tokens: 5, capacity: 100 },
  })
  await at(new Date(now.getTime() + 1_000))
  t.match(await showTeam(store.database, id), { bucket: { tokens: 25, capacity: 100 } })
})

t.test('a lowered limit leaves a remaining quota of 0', async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('free')
  await store.email(id)
  await store.email(id)
  t.match(await subscribe(store, id, { plan: 'free', email_limit: 1 }), {
    used: { emails: 2 },
    left: { emails: 0 },
  })
  await t.rejects(store.email(id), { code: 'quota_exceeded', message: /\b1 emails/ })
})

t.test('a rejected change changes nothing', async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('free')
  const refused = async (change: Partial<SubscriptionChange>, message: RegExp) =>
    await t.rejects(subscribe(store, id, { plan: 'free', ...change }), { name: 'RequestError', message })
  await refused({ plan: 'marketing' }, /no plan marketing/)
  await refused({ email_limit: -1 }, /email_limit/)
  await refused({ whatsapp_limit: 0.5 }, /whatsapp_limit/)
  await refused({ send_rate_per_second: Number.NaN }, /rate/)
  await refused({ period: period('2026-02-11', '2026-03-11') }, /future/)
  await refused({ period: period('2026-02-01', '2026-02-01') }, /end after its start/)
  t.match(await showTeam(store.database, id), { plan: 'free', limits: { emails: 5000 } })
})

t.test('the counter equals a recount after any change', async (t) => {
  const { store, at } = await storeAt(t, day('2028-01-31'))
  const step = fc.oneof(
    fc.record({ kind: fc.constant('send' as const), hours: fc.integer({ min: 1, max: 400 }) }),
    fc.record({ kind: fc.constant('delete' as const), pick: fc.nat() }),
    fc.record({
      kind: fc.constant('move' as const),
      plan: fc.constantFrom('free', 'pro', 'enterprise'),
      back: fc.integer({ min: 0, max: 40 }),
      days: fc.integer({ min: 1, max: 40 }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      let now = day('2028-01-31')
      await at(now)
      const id = await store.team('free')
      let stored: string[] = []
      for (const each of steps) {
        if (each.kind === 'send') {
          now = new Date(now.getTime() + each.hours * 3_600_000)
          stored.push((await store.email(id, now)).id)
        } else if (each.kind === 'delete' && stored.length > 0) {
          const gone = stored[each.pick % stored.length] ?? ''
          stored = stored.filter((kept) => kept !== gone)
          await store.database.transaction((tx) => removeEmail(byCli(tx), id, gone))
        } else if (each.kind === 'move') {
          const start = new Date(now.getTime() - each.back * 86_400_000)
          const end = new Date(start.getTime() + each.days * 86_400_000)
          await subscribe(store, id, { plan: each.plan, period: { start, end } })
        }
        const {
          used,
          period: { start, end },
        } = await showTeam(store.database, id)
        const { emails: recount } = await usageIn(store.database, id, {
          start: new Date(start),
          end: new Date(end),
        })
        if (used.emails !== recount) throw new Error(`counted ${used.emails}, stored ${recount}`)
      }
    }),
    { numRuns: 15 },
  )
  t.pass('15 runs')
})

t.test("rejects limits outside the columns' range", async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('free')
  for (const field of ['email_limit', 'contact_limit', 'whatsapp_limit'] as const) {
    for (const figure of [2_147_483_648, -1, 1.5]) {
      const message = `${field} must be a whole number from 0 to 2147483647.`
      await t.rejects(subscribe(store, id, { plan: 'pro', [field]: figure }), { message })
    }
  }
  t.match(await showTeam(store.database, id), { plan: 'free', limits: { emails: 5000 } })
})

t.test("a new plan resets the team's own limits", async (t) => {
  const { store } = await storeAt(t, day('2026-02-10'))
  const id = await store.team('pro')
  const own = { email_limit: 7, contact_limit: 8, whatsapp_limit: 9, send_rate_per_second: 3 }
  t.match(await subscribe(store, id, { plan: 'pro', ...own }), {
    overrides: { emails: 7, contacts: 8, whatsapp: 9, rate: 3 },
  })
  t.match(await subscribe(store, id, { plan: 'pro', email_limit: null }), {
    limits: { emails: 50_000, contacts: 8 },
    overrides: { emails: null, contacts: 8, whatsapp: 9, rate: 3 },
  })
  const down = await subscribe(store, id, { plan: 'free', contact_limit: 20 })
  t.strictSame(down.limits, { emails: 5_000, contacts: 20, whatsapp: 250, rate: 1, storage: 1_000_000_000 })
  t.strictSame(down.overrides, { emails: null, contacts: 20, whatsapp: null, rate: null, storage: null })
  t.strictSame((await showTeam(store.database, id)).overrides, down.overrides)
  t.match(await subscribe(store, id, { plan: 'free' }), { overrides: { contacts: 20 } }, 'the same plan')
})
