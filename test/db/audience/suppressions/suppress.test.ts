/** The causes, the display and the end of suppressions. DECISIONS: Suppression. */
import { sql } from 'slonik'
import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import type { ContactEffect } from '../../../../db/audience/contacts/effect.ts'
import { unsubscribe } from '../../../../db/audience/subscription/subscription.ts'
import { suppressedAddress } from '../../../../db/audience/suppressions/addresses.sql.ts'
import { CAUSE_AS, suppressAddresses } from '../../../../db/audience/suppressions/by-hand.ts'
import { liftSuppression, showContact } from '../../../../db/audience/suppressions/lift.ts'
import { reviewSoftSuppressions } from '../../../../db/audience/suppressions/suppress.ts'
import { lockContacts } from '../../../../db/audience/suppressions/suppressions.sql.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../../../db/messages/emails/events.sql.ts'
import type { EmailEventKind } from '../../../../db/messages/emails/status.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { emailRules, readWorkerSettings } from '../../../../workers/config.ts'
import { reviewSuppressions } from '../../../../workers/jobs/review-suppressions.ts'
import { announced, listenTo } from '../../../support/contacts.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { hold } from '../../../support/held.ts'
import { contactState, storeContact, storeEmails, storeTeam } from '../../../support/reports.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const service = await openStore(t)
const { database } = service
const secrets = createSecrets(SECRET_KEY)
const HOUR = 3_600_000
const START = Date.UTC(2026, 0, 1)
const hour = (hours: number): Date => new Date(START + hours * HOUR)
const REPORT = '0190a1b2-0000-7000-8000-00000000000c'

/** A team with the contact ana@example.org, and events of emails to her. */
async function begin(status: 'subscribed' | 'unsubscribed' = 'subscribed') {
  const team = await storeTeam(service)
  const contact_id = await storeContact(service, team, 'ana@example.org', status)
  const email = async () => (await storeEmails(service, team, [['ana@example.org']], { contact_id }))[0] ?? ''
  const happen = async (email_id: string, kind: EmailEventKind, effect: ContactEffect, at: Date) => {
    const event: EmailEvent = {
      ...{ team_id: team, email_id, kind, effect, recipient: 'ana@example.org', occurred_at: at },
      ...{ event_key: `${kind}:${at.toISOString()}`, report_id: REPORT },
      detail: `what the server said of ${kind}`,
    }
    await database.transaction((tx) => applyEmailEvents(tx, [event], at))
  }
  /** Stores soft bounces of separate emails, an hour apart. @returns the last email. */
  const softBounces = async (count: number, from = 0): Promise<string> => {
    let last = ''
    for (let index = 0; index < count; index++) {
      last = await email()
      await happen(last, 'bounced', 'soft', hour(from + index))
    }
    return last
  }
  const shown = () => showContact(database, team, 'ana@example.org')
  const state = () => contactState(service, team, 'ana@example.org')
  const lift = (reason = 'she asked') =>
    database.transaction((tx) =>
      liftSuppression({ tx, now: hour(100), actor: 'cli', secrets }, team, {
        identity: 'ana@example.org',
        reason,
      }),
    )
  return { team, contact_id, email, happen, softBounces, shown, state, lift }
}

const SUPPRESSED = { status: 'bounced', suppression: 'bounced' }
const FREE = { status: 'subscribed', suppression: null }

t.test('a suppression stores its cause', async (t) => {
  const { email, happen, shown } = await begin()
  const first = await email()
  t.match(await shown(), { suppression: null, suppression_cause: null, suppression_lifted_at: null })
  await happen(first, 'bounced', 'hard', hour(1))
  const bounce = {
    what: 'permanent bounce',
    at: hour(1).toISOString(),
    email_id: first,
    report_id: REPORT,
    detail: 'what the server said of bounced',
  }
  t.strictSame((await shown()).suppression_cause, bounce)
  await happen(await email(), 'bounced', 'hard', hour(2))
  t.strictSame((await shown()).suppression_cause, bounce, 'the first one stays')
  const second = await email()
  await happen(second, 'complained', 'complaint', hour(3))
  t.match(await shown(), {
    status: 'complained',
    suppression_cause: { what: 'complaint', email_id: second, at: hour(3).toISOString() },
  })
})

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

t.test('lifting restores the previous status and resets soft bounces', async (t) => {
  const subscribed = await begin()
  await subscribed.softBounces(5)
  for (const reason of ['  ', 'x'.repeat(501)])
    await t.rejects(subscribed.lift(reason), { code: 'bad_request', fields: [{ field: 'reason' }] })
  const lifted = await subscribed.lift()
  t.match(lifted, { ...FREE, suppression_cause: null, suppression_lifted_at: hour(100).toISOString() })
  await t.rejects(subscribed.lift(), { code: 'bad_request' })
  await subscribed.softBounces(4, 101)
  t.same(await subscribed.state(), FREE)
  await subscribed.softBounces(1, 105)
  t.same(await subscribed.state(), SUPPRESSED)

  const unsubscribed = await begin('unsubscribed')
  await unsubscribed.happen(await unsubscribed.email(), 'bounced', 'hard', hour(1))
  t.same(await unsubscribed.state(), SUPPRESSED)
  t.match(await unsubscribed.lift(), { status: 'unsubscribed', suppression: null })

  const later = await begin()
  await later.happen(await later.email(), 'complained', 'complaint', hour(1))
  await database.transaction((tx) =>
    unsubscribe({ tx, now: hour(2), actor: null }, later.team, 'ana@example.org'),
  )
  await later.happen(await later.email(), 'bounced', 'hard', hour(3))
  t.match(await later.shown(), { suppression_cause: { what: 'complaint' } }, 'the first one stays')
  const reason = 'x'.repeat(500)
  t.match(await later.lift(reason), { status: 'unsubscribed', suppression: null }, 'unsubscribed meanwhile')
  t.match(await auditEntries(database, { team: later.team, limit: 1 }), [
    { actor: 'cli', action: 'contact.lift', subject: 'ana@example.org', detail: reason },
  ])
  await t.rejects(showContact(database, later.team, 'nobody@example.org'), { code: 'contact_not_found' })
  await t.rejects(
    database.transaction((tx) =>
      liftSuppression({ tx, now: hour(1), actor: 'cli', secrets }, later.team, {
        identity: 'nobody@example.org',
        reason: 'x',
      }),
    ),
    { code: 'bad_request' },
  )
})

t.test('a manual suppression keeps an existing cause', async (t) => {
  const { team, happen, email, shown, state } = await begin('unsubscribed')
  await storeContact(service, team, 'eve@example.org', 'subscribed')
  const add = (as: 'bounced' | 'complained') =>
    database.transaction((tx) => {
      const added = ['ana@example.org', 'eve@example.org', 'stranger@example.org'].map((email) => ({
        ...{ email, identity: email, cause: CAUSE_AS[as], reason: 'another service said so' },
      }))
      return suppressAddresses({ tx, now: hour(9) }, team, added)
    })
  await happen(await email(), 'bounced', 'hard', hour(1))
  t.equal(await add('bounced'), 2, 'an address needs no contact')
  t.match((await shown()).suppression_cause, { what: 'permanent bounce' })
  t.match(await contactState(service, team, 'eve@example.org'), SUPPRESSED)
  t.equal(await add('complained'), 3)
  t.match(await shown(), {
    suppression: 'complained',
    suppression_cause: {
      what: 'added by hand',
      at: hour(9).toISOString(),
      detail: 'another service said so',
    },
  })
  t.equal(await add('bounced'), 0)
  t.match(await state(), { status: 'complained' })
})

t.test('publishes each change once with its time and message', async (t) => {
  const { team, contact_id, email, happen, softBounces, lift } = await begin()
  await listenTo(service, team)
  const deliver = async (at: number) => happen(await email(), 'delivered', 'delivered', hour(at))
  const bounce = async (at: number) => happen(await email(), 'bounced', 'hard', hour(at))
  const complain = async (at: number) => happen(await email(), 'complained', 'complaint', hour(at))
  const steps: [() => Promise<unknown>, news?: [type: string, at: number, detail: string]][] = [
    [() => softBounces(4, 1)],
    [() => softBounces(1, 5), ['suppressed', 5, 'what the server said of bounced']],
    [() => softBounces(1, 6)],
    [() => deliver(7), ['released', 7, 'delivered']],
    [() => deliver(8)],
    [() => softBounces(5, 9), ['suppressed', 13, 'what the server said of bounced']],
    [() => bounce(14)],
    [() => complain(15)],
    [() => bounce(16)],
    [
      () =>
        database.transaction((tx) =>
          unsubscribe({ tx, now: hour(17), actor: null }, team, 'ana@example.org'),
        ),
      ['unsubscribed', 17, ''],
    ],
    [() => complain(18)],
    [lift, ['released', 100, 'she asked']],
    [() => bounce(101), ['suppressed', 101, 'what the server said of bounced']],
  ]
  const expected = []
  for (const [doing, news] of steps) {
    await doing()
    if (news) expected.push([`contact.${news[0]}`, hour(news[1]).toISOString(), news[2]])
    const said = await announced(service, contact_id)
    const details = said.map(({ type, timestamp, data }) => [type, timestamp, data.detail])
    t.strictSame(details, expected)
  }
})

t.test('each event of a batch only affects its own contact', async (t) => {
  const { team, email, happen, state } = await begin()
  for (const name of ['ben', 'eve']) await storeContact(service, team, `${name}@example.org`)
  const to = [['ben@example.org'], ['ana@example.org', 'ben@example.org'], ['eve@example.org']]
  const [his = '', both = '', hers = ''] = await storeEmails(service, team, to)
  const event = { team_id: team, occurred_at: hour(1), detail: '', event_key: 'x', kind: 'bounced' } as const
  const apply = (...events: EmailEvent[]) =>
    database.transaction((tx) => applyEmailEvents(tx, events, hour(1)))
  await apply(
    { ...event, email_id: await email(), recipient: 'ana@example.org', effect: 'hard' },
    { ...event, email_id: his, recipient: 'ben@example.org', effect: 'hard' },
    { ...event, email_id: hers, recipient: 'eve@example.org', effect: 'soft' },
    { ...event, email_id: both, recipient: null, effect: 'complaint' },
  )
  t.match(await state(), SUPPRESSED)
  t.match(await contactState(service, team, 'ben@example.org'), SUPPRESSED)
  t.match(await contactState(service, team, 'eve@example.org'), FREE)
  const identities = ['ana@example.org', 'ben@example.org'].map((identity) => ({ team_id: team, identity }))
  const commit = await hold(t, database, (tx) => lockContacts(tx, identities))
  await happen(await email(), 'sent', 'none', hour(2))
  await apply({ ...event, email_id: his, recipient: 'ben@example.org', event_key: 'y' })
  await commit()
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
