/** The causes, the display and the end of suppressions. DECISIONS: Suppression. */
import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { unsubscribe } from '../../../../db/audience/subscription/subscription.ts'
import { CAUSE_AS, suppressAddresses } from '../../../../db/audience/suppressions/by-hand.ts'
import { liftSuppression, showContact } from '../../../../db/audience/suppressions/lift.ts'
import { lockContacts } from '../../../../db/audience/suppressions/suppressions.sql.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../../../db/messages/emails/events.sql.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { announced, listenTo } from '../../../support/contacts.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { hold } from '../../../support/held.ts'
import { contactState, storeContact, storeEmails } from '../../../support/reports.ts'
import { FREE, hour, REPORT, SUPPRESSED, startSuppressions } from '../../../support/suppressions.ts'
import t from '../../../support/tap.ts'

const { service, database, begin } = await startSuppressions(t)
const secrets = createSecrets(SECRET_KEY)

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
