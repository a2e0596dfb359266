/** Soft bounces suppress an address until an email is delivered. DECISIONS: Suppression. */
import { sql } from 'slonik'
import type { ContactEffect } from '../../../../db/audience/contacts/effect.ts'
import { suppressedAddress } from '../../../../db/audience/suppressions/addresses.sql.ts'
import { reviewSoftSuppressions } from '../../../../db/audience/suppressions/suppress.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import { emailRules, readWorkerSettings } from '../../../../workers/config.ts'
import { reviewSuppressions } from '../../../../workers/jobs/review-suppressions.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { storeEmails, storeTeam } from '../../../support/reports.ts'
import { FREE, hour, SUPPRESSED, startSuppressions } from '../../../support/suppressions.ts'
import t from '../../../support/tap.ts'

const { service, database, begin } = await startSuppressions(t)

t.test('five soft bounces suppress, and a delivery resets them', async (t) => {
  const { email, happen, softBounces, shown, state } = await begin()
  await softBounces(4)
  t.same(await state(), FREE)
  const fifth = await softBounces(1, 4)
  t.match(await shown(), { ...SUPPRESSED, suppression_cause: { what: 'soft bounces', email_id: fifth } })
  await happen(await email(), 'delivered', 'delivered', hour(6))
  t.same(await state(), FREE)
  t.match(await shown(), { suppression_cause: null })
  await softBounces(4, 7)
  t.same(await state(), FREE, 'they count from zero again')
})

t.test('soft bounces of an address without a contact count too', async (t) => {
  const team = await storeTeam(service)
  const happen = async (kind: 'bounced' | 'delivered', effect: ContactEffect, at: Date) => {
    const [email_id = ''] = await storeEmails(service, team, [['stranger@example.org']])
    const event = { team_id: team, email_id, kind, effect, recipient: 'stranger@example.org' } as const
    const said = { occurred_at: at, event_key: kind, detail: '452 4.2.2 full' }
    await database.transaction((tx) => applyEmailEvents(tx, [{ ...event, ...said }], at))
  }
  const cause = async () => (await suppressedAddress(database, team, 'stranger@example.org'))?.cause
  for (const at of [1, 2, 3, 4]) await happen('bounced', 'soft', hour(at))
  t.equal(await cause(), undefined)
  await happen('bounced', 'soft', hour(5))
  t.equal(await cause(), 'soft_bounces')
  await happen('delivered', 'delivered', hour(6))
  t.equal(await cause(), undefined)
})

t.test('a delivery ends no suppression by bounce or complaint', async (t) => {
  for (const effect of ['hard', 'complaint'] as const) {
    const { email, happen, softBounces, state } = await begin()
    await softBounces(5)
    await happen(await email(), effect === 'hard' ? 'bounced' : 'complained', effect, hour(6))
    await happen(await email(), 'delivered', 'delivered', hour(7))
    t.match(await state(), { suppression: effect === 'hard' ? 'bounced' : 'complained' })
  }
})

t.test('an email without a bounce for 24 h counts as delivered', async (t) => {
  const { email, happen, softBounces, state } = await begin()
  await softBounces(4)
  const undisputed = await email()
  await happen(undisputed, 'sent', 'none', hour(4))
  await softBounces(1, 29)
  t.same(await state(), FREE, 'the one between has arrived')
  await softBounces(3, 30)
  t.same(await state(), FREE)
  await softBounces(1, 33)
  t.same(await state(), SUPPRESSED, 'the fifth since then')

  const other = await begin()
  await other.softBounces(4)
  const bounced = await other.email()
  await other.happen(bounced, 'sent', 'none', hour(4))
  await other.happen(bounced, 'bounced', 'none', hour(5))
  await other.happen(await other.email(), 'sent', 'none', hour(28))
  await other.softBounces(1, 29)
  t.same(await other.state(), SUPPRESSED, 'one that bounced, or was sent an hour ago, is no delivery')
})

t.test('an email counts as delivered by time unless it has a report', async (t) => {
  for (const kind of ['delayed', 'unreadable', 'unsubscribed', 'machine_opened'] as const) {
    const { email, happen, softBounces, state } = await begin()
    await softBounces(5)
    const reported = await email()
    await happen(reported, 'sent', 'none', hour(10))
    await happen(reported, kind, 'none', hour(11))
    t.equal(await reviewSoftSuppressions(database, hour(40)), 0, kind)
    t.same(await state(), SUPPRESSED, kind)
  }
  const { email, happen, softBounces } = await begin()
  await softBounces(5)
  const answered = await email()
  await happen(answered, 'sent', 'none', hour(10))
  await happen(answered, 'auto_reply', 'none', hour(11))
  t.equal(await reviewSoftSuppressions(database, hour(40)), 1, 'an automatic reply is no report')
})

t.test('SENT_COUNTS_AS_DELIVERED_HOURS sets when sent counts as delivered', async (t) => {
  const { sent_counts_ms } = emailRules(
    readWorkerSettings({
      DATABASE_URL: 'postgres://h/x',
      SECRET_KEY,
      SENT_COUNTS_AS_DELIVERED_HOURS: '1.5',
      SMTP_URL: 'smtp://127.0.0.1',
    }),
  )
  t.equal(sent_counts_ms, 5_400_000)
  const { email, happen, softBounces, state } = await begin()
  await softBounces(5)
  await happen(await email(), 'sent', 'none', hour(10))
  t.equal(await reviewSoftSuppressions(database, hour(11), sent_counts_ms), 0)
  t.equal(await reviewSoftSuppressions(database, hour(12), sent_counts_ms), 1)
  t.same(await state(), FREE)
})

t.test('reviews hourly, or every minute for limits below an hour', async (t) => {
  const { email, happen, softBounces, state } = await begin()
  await softBounces(5)
  await happen(await email(), 'sent', 'none', hour(10))
  const review = (at: Date, sent_counts_ms: number) =>
    reviewSuppressions({ database, log: { info: () => undefined }, clock: () => at, sent_counts_ms } as never)
  const minute = (minutes: number) => new Date(hour(60).getTime() + minutes * 60_000)
  await review(minute(22), 3_600_000)
  t.same(await state(), SUPPRESSED)
  await review(minute(23), 3_600_000)
  t.same(await state(), FREE)
  await softBounces(5)
  await happen(await email(), 'sent', 'none', minute(0))
  await review(minute(59), 3_540_000)
  t.same(await state(), FREE)
})

t.test('a contact recovers after an email stays sent a day', async (t) => {
  const { email, happen, softBounces, state } = await begin()
  await softBounces(5)
  await happen(await email(), 'sent', 'none', hour(10))
  t.equal(await reviewSoftSuppressions(database, hour(33)), 0)
  t.same(await state(), SUPPRESSED)
  t.equal(await reviewSoftSuppressions(database, hour(35)), 1)
  t.same(await state(), FREE)
  t.equal(await reviewSoftSuppressions(database, hour(36)), 0)
})

t.test('the review covers all soft suppressions, in batches', async (t) => {
  const team = await storeTeam(service)
  await database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since)
    select ${team}, e, e, 'soft_bounces', ${sql.timestamp(hour(0))}
    from generate_series(1, 501) i cross join lateral (select 'a' || lpad(i::text, 3, '0') || '@example.org') one (e)`)
  const last = 'a501@example.org'
  const [id = ''] = await storeEmails(service, team, [[last]])
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail, effect)
    values (${team}, ${id}, decode(md5('x'), 'hex'), 'delivered', ${last}, ${sql.timestamp(hour(1))}, '', 'delivered')`)
  t.equal(await reviewSoftSuppressions(database, hour(2)), 1, 'only a delivery ends one')
})
