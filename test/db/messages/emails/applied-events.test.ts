/**
 * The effect of single events, reports and attempts on emails. apply-events.test.ts tests that order doesn't
 * matter.
 */
import { sql } from 'slonik'
import { lockAccount } from '../../../../db/accounts/teams/limits.ts'
import {
  applyEmailEvents,
  applyReportedEmails,
  type ReportedEmail,
} from '../../../../db/messages/emails/apply-events.ts'
import { emailById } from '../../../../db/messages/emails/emails.sql.ts'
import { emailsToDeliver } from '../../../../db/messages/emails/outgoing.sql.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { hold } from '../../../support/held.ts'
import {
  contactState,
  eventsOf,
  setPending,
  setProviderId,
  storeContact,
  storeEmails,
  storeTeam,
} from '../../../support/reports.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { anEvent } from '../../../support/webhooks.ts'
import { until } from '../../../support/worker.ts'

const NOW = new Date(Date.UTC(2026, 0, 1, 1))
const UNKNOWN_ID = '0190a000-0000-7000-8000-000000000000'

/** The state of an unsent email, as an attempt sees it. */
const FRESH = { provider_message_id: null, pending_recipients: null }
const SECRETS = createSecrets(SECRET_KEY)
const service = await openStore(t)

/** A report that an email was delayed, without a recipient. */
const reported = (ref: ReportedEmail['ref'], changes: Partial<ReportedEmail> = {}): ReportedEmail => ({
  ref,
  ...{ kind: 'delayed', recipient: null, occurred_at: NOW, detail: '', effect: 'none' },
  event_key: `${changes.kind}:${changes.recipient}:${changes.provider_message_id}`,
  provider_message_id: null,
  ...changes,
})

const occurs = (event: Parameters<typeof anEvent>[0]) => anEvent({ ...event, occurred_at: NOW })

const apply = (...events: ReportedEmail[]) =>
  service.database.transaction((tx) => applyReportedEmails(tx, events, NOW))

t.test('each event has its own result', async (t) => {
  const team = await storeTeam(service)
  const [one = '', two = ''] = await storeEmails(service, team, [
    ['Ana <Ana@Example.org>'],
    ['ana@example.org', 'ben@example.org'],
  ])
  await setProviderId(service, two, 'p-two')
  const named = (recipient: string | null) => ({ recipient })
  const applied = { kind: 'applied', team_id: team }
  const foreign = { kind: 'ignored', reason: 'it names a recipient that the email does not have' }
  const cases: [ReportedEmail, unknown][] = [
    [reported({ provider_message_id: 'p-nobody' }), { kind: 'unknown' }],
    [reported({ team_id: team, id: one }, named('ANA@example.ORG')), applied],
    [reported({ team_id: team, id: two }, named('eve@example.org')), foreign],
    [reported({ team_id: team, id: UNKNOWN_ID }), { kind: 'unknown' }],
    [reported({ team_id: team, id: one }), applied],
    [reported({ provider_message_id: 'p-two' }), applied],
  ]
  const results = await apply(...cases.map(([event]) => event))
  for (const [at, [, result]] of cases.entries()) t.strictSame(results[at], result, `${at}`)
  t.strictSame(await service.database.transaction((tx) => applyEmailEvents(tx, [], NOW)), [])
  const recipientsOf = async (id: string) => (await eventsOf(service, id)).map(({ recipient }) => recipient)
  t.same(await recipientsOf(one), ['Ana@Example.org', 'Ana@Example.org'], 'who is not named is the only one')
  t.same(await recipientsOf(two), [null], 'or nobody, of several')
})

t.test('mail only changes the contact of a sole recipient', async (t) => {
  for (const [to, by_mail, status] of [
    [['ana@example.org'], true, 'bounced'],
    [['ana@example.org', 'ben@example.org'], true, 'subscribed'],
    [['ana@example.org', 'ben@example.org'], false, 'bounced'],
  ] as const) {
    const team = await storeTeam(service)
    await storeContact(service, team, 'ana@example.org')
    const [id = ''] = await storeEmails(service, team, [to])
    const bounce = { kind: 'bounced', effect: 'hard', recipient: 'ana@example.org', by_mail } as const
    await apply(reported({ team_id: team, id }, bounce))
    t.match(await contactState(service, team, 'ana@example.org'), { status }, `${to} ${by_mail}`)
  }
})

t.test("a report adds the provider's ID, and never replaces it", async (t) => {
  const team = await storeTeam(service)
  const [lost = '', known = '', partial = ''] = await storeEmails(service, team, [
    ['a@example.org'],
    ['a@example.org'],
    ['a@example.org', 'b@example.org'],
  ])
  await setProviderId(service, known, 'p-known')
  await setPending(service, partial, ['b@example.org'])
  const report = (id: string, provider_message_id: string | null, kind: ReportedEmail['kind'] = 'delayed') =>
    reported({ team_id: team, id }, { provider_message_id, kind })
  const idOf = async (id: string) => (await emailById(service.database, team, id))?.provider_message_id
  const refs = [lost, known, partial].map((email_id) => ({ team_id: team, email_id }))
  const due = async () => (await emailsToDeliver(service.database, refs)).map(({ id }) => id)

  await apply(report(lost, null), report(partial, null))
  t.equal(await idOf(lost), null, 'a report without an id brings none')
  t.same((await due()).sort(), [lost, partial].sort())
  await apply(report(lost, 'p-1', 'sent'), report(known, 'p-2'), report(partial, 'p-3'))
  t.same([await idOf(lost), await idOf(known), await idOf(partial)], ['p-1', 'p-known', 'p-3'])
  t.same(await due(), [], 'what the provider has taken is not tried again, for nobody')
  await apply(report(lost, 'p-4'))
  t.equal(await idOf(lost), 'p-1', 'what was stored first stays')
})

t.test('an attempt stores pending recipients unless the row has changed', async (t) => {
  const team = await storeTeam(service)
  const to = ['now@example.org', 'later@example.org']
  const [id = ''] = await storeEmails(service, team, [to], { size_kb: null })
  const ref = { team_id: team, email_id: id }
  const leave = async (
    left: string[] | null,
    seen: { provider_message_id: string | null; pending_recipients: string[] | null },
    key: string,
  ) => {
    const events = to.map((recipient, index) => {
      const kind = index === 0 || left === null ? 'sent' : 'deferred'
      return occurs({ ...ref, kind, event_key: `${key}:${recipient}`, recipient })
    })
    const said = { provider_message_id: 'p-1', size_kb: 1, pending_recipients: left, undecided: left ?? [] }
    const attempt = { ...ref, ...said, seen }
    await service.database.transaction((tx) => applyEmailEvents(tx, events, NOW, [attempt]))
    return emailById(service.database, team, id)
  }
  const left = ['later@example.org']
  t.match(await leave(left, FRESH, 'first'), { status: 'sent', size_kb: 1, pending_recipients: left })
  const second = { provider_message_id: 'p-1', pending_recipients: left }
  t.match(await leave(null, second, 'second'), { status: 'sent', pending_recipients: null })
  t.match(await leave(left, FRESH, 'stale'), { provider_message_id: 'p-1', pending_recipients: null })
})

t.test("an attempt doesn't restore erased recipients", async (t) => {
  const team = await storeTeam(service)
  const [id = ''] = await storeEmails(service, team, [['now@example.org', 'Later <later@example.org>']])
  const ref = { team_id: team, email_id: id }
  const seen = { provider_message_id: null, pending_recipients: null }
  for (const [gone, left] of [
    [['Later@example.org', 'erased@example.org'], ['Later@example.org']],
    [['erased@example.org'], null],
  ] as const) {
    const event = occurs({ ...ref, event_key: gone.join(), kind: 'sent', recipient: 'now@example.org' })
    const said = { provider_message_id: null, size_kb: 1, pending_recipients: gone, undecided: gone }
    const attempt = { ...ref, ...said, seen }
    const attempts = [{ ...attempt, email_id: UNKNOWN_ID }, attempt]
    await service.database.transaction((tx) => applyEmailEvents(tx, [event], NOW, attempts))
    t.match(await emailById(service.database, team, id), { pending_recipients: left })
    seen.pending_recipients = left as never
  }
})

t.test('a report ends retries after a lost response', async (t) => {
  const team = await storeTeam(service)
  const to = ['ana@example.org', 'ben@example.org', 'cleo@example.org']
  const [before = '', after = ''] = await storeEmails(service, team, [to, to])
  const left = to.slice(0, 2)
  const lose = async (id: string) => {
    const ref = { team_id: team, email_id: id }
    const events = [
      occurs({ ...ref, kind: 'unknown', recipient: 'ana@example.org' }),
      occurs({ ...ref, kind: 'deferred', recipient: 'ben@example.org' }),
    ]
    const said = { provider_message_id: null, size_kb: 1, pending_recipients: left, undecided: left }
    const attempt = { ...ref, ...said, seen: FRESH }
    await service.database.transaction((tx) => applyEmailEvents(tx, events, NOW, [attempt]))
  }
  const say = (id: string) =>
    apply(
      ...to.map((recipient) => reported({ team_id: team, id }, { kind: 'delivered', recipient })),
      reported({ team_id: team, id }, { kind: 'delayed', recipient: 'ana@example.org' }),
    )
  await say(before)
  await lose(before)
  await lose(after)
  t.match(await emailById(service.database, team, after), { pending_recipients: left })
  await say(after)
  for (const id of [before, after])
    t.match(
      await emailById(service.database, team, id),
      { status: 'delivered', pending_recipients: ['ben@example.org'] },
      'nobody can have reported on who was only put off',
    )
})

t.test('a report ends retries for recipients accepted together', async (t) => {
  const team = await storeTeam(service)
  const [ana, ben, cleo] = ['ana@example.org', 'ben@example.org', 'cleo@example.org'] as const
  const kindOf = { u: 'unknown', d: 'deferred', r: 'bounced', s: 'sent' } as const
  type Said = keyof typeof kindOf
  /** Records an attempt with one response per recipient. It started when no recipient was decided. */
  const attempt = (id: string, nth: number, answers: string) => {
    const ref = { team_id: team, email_id: id }
    const said = [ana, ben, cleo].map((recipient, at) => ({ recipient, answer: answers[at] as Said }))
    const events = said.map(({ recipient, answer }) => ({
      ...{ ...ref, recipient, kind: kindOf[answer], event_key: `${nth}:${recipient}`, detail: '' },
      occurred_at: new Date(NOW.getTime() + nth * 600_000),
    }))
    const undecided = said.flatMap(({ recipient, answer }) => ('ud'.includes(answer) ? [recipient] : []))
    const isPartial = undecided.length > 0 && answers !== 'uuu'
    const record = { ...ref, size_kb: 1, provider_message_id: null, seen: FRESH }
    const left = { pending_recipients: isPartial ? undecided : null, undecided }
    return service.database.transaction((tx) => applyEmailEvents(tx, events, NOW, [{ ...record, ...left }]))
  }
  for (const [answers, left] of [
    [['uuu'], []],
    [['uud'], [cleo]],
    [['udu'], [ben]],
    [['uuu', 'uuu'], []],
    [['uuu', 'uud'], [cleo]],
    [['uur', 'uur'], []],
    // Ana may have been accepted in an attempt that deferred the others.
    [
      ['uuu', 'sdd'],
      [ben, cleo],
    ],
    [
      ['uuu', 'udd'],
      [ben, cleo],
    ],
    // In the second attempt she can't have been.
    [['uuu', 'rdd'], []],
    [['ddd', 'uuu'], []],
  ] as const) {
    for (const kind of ['delivered', 'bounced'] as const) {
      for (let before = 0; before <= answers.length; before++) {
        const [id = ''] = await storeEmails(service, team, [[ana, ben, cleo]])
        const occurred_at = new Date(NOW.getTime() + 7)
        const report = () => apply(reported({ team_id: team, id }, { kind, recipient: ana, occurred_at }))
        for (const [nth, given] of answers.entries()) {
          if (nth === before) await report()
          await attempt(id, nth, given)
        }
        if (before === answers.length) await report()
        const [row] = await emailsToDeliver(service.database, [{ team_id: team, email_id: id }])
        const due = row ? (row.pending_recipients ?? [ana, ben, cleo]) : []
        t.strictSame(due, left, `${answers}, ${kind} after ${before}`)
      }
    }
  }
  const [id = ''] = await storeEmails(service, team, [[ana, ben, cleo]])
  await attempt(id, 0, 'uuu')
  await attempt(id, 1, 'rdd')
  t.match(await emailById(service.database, team, id), { pending_recipients: [ben, cleo] }, 'no report came')
})

t.test('a report about one recipient leaves the others pending', async (t) => {
  const team = await storeTeam(service)
  const to = ['Ana <ana@example.org>', 'ben@example.org', 'eve@example.org']
  const ids = await storeEmails(service, team, [to, to, to, to.slice(0, 1)])
  const [killed = '', unanswered = '', attempted = '', sole = ''] = ids
  const about = (id: string, recipient: string, kind: ReportedEmail['kind']) =>
    apply(reported({ team_id: team, id }, { recipient, kind }))
  const pendingOf = async (id: string) =>
    (await emailById(service.database, team, id))?.pending_recipients ?? null
  const dueOf = async (id: string) =>
    (await emailsToDeliver(service.database, [{ team_id: team, email_id: id }])).length

  await about(killed, 'ben@example.org', 'delayed')
  t.equal(await pendingOf(killed), null, 'it goes on trying')
  await about(killed, 'ANA@example.org', 'bounced')
  t.strictSame(await pendingOf(killed), ['ben@example.org', 'eve@example.org'])
  t.equal(await dueOf(killed), 1)
  await about(killed, 'ben@example.org', 'delivered')
  await about(killed, 'ben@example.org', 'opened')
  t.strictSame(await pendingOf(killed), ['eve@example.org'])
  await about(killed, 'eve@example.org', 'delivered')
  t.equal(await dueOf(killed), 0, 'nobody is left')

  await about(unanswered, 'ana@example.org', 'unknown')
  await about(unanswered, 'ana@example.org', 'delivered')
  t.equal(await dueOf(unanswered), 0, 'after a lost answer all were taken together')

  await setProviderId(service, attempted, 'p-9')
  await setPending(service, attempted, ['ben@example.org'])
  await about(attempted, 'ben@example.org', 'delivered')
  t.strictSame(await pendingOf(attempted), ['ben@example.org'], 'who was put off is not taken at a word')

  await about(sole, 'ana@example.org', 'delivered')
  t.equal(await dueOf(sole), 0)
})

t.test("attempts don't retry recipients decided by a report", async (t) => {
  const team = await storeTeam(service)
  const [ana, ben, eve] = ['ana@example.org', 'ben@example.org', 'eve@example.org'] as const
  for (const [undecided, left] of [
    [[], null],
    [[eve], [eve]],
    // This attempt decided none of them. An earlier one wasn't recorded in time.
    [
      [ana, ben, eve],
      [ben, eve],
    ],
  ] as const) {
    const [id = ''] = await storeEmails(service, team, [[ana, ben, eve]])
    await apply(reported({ team_id: team, id }, { recipient: ana, kind: 'delivered' }))
    const ref = { team_id: team, email_id: id }
    const events = [occurs({ ...ref, recipient: ben, kind: 'deferred' })]
    const partly = undecided.length > 0 && undecided.length < 3
    const said = { provider_message_id: null, size_kb: 1, pending_recipients: partly ? undecided : null }
    const attempt = { ...ref, ...said, undecided, seen: FRESH }
    await service.database.transaction((tx) => applyEmailEvents(tx, events, NOW, [attempt]))
    t.strictSame((await emailById(service.database, team, id))?.pending_recipients ?? null, left)
  }
})

t.test("an unsubscribe of a deleted team doesn't affect its batch", async (t) => {
  const team = await service.team()
  await storeContact(service, team, 'ana@example.org')
  const [id = ''] = await storeEmails(service, team, [['ana@example.org']])
  const left = { kind: 'unsubscribed', effect: 'unsubscribe' } as const
  const events = [UNKNOWN_ID, team].map((team_id) => reported({ team_id, id }, left))
  const results = await service.database.transaction((tx) =>
    applyReportedEmails(tx, events, NOW, { secrets: SECRETS }),
  )
  t.strictSame(results, [{ kind: 'unknown' }, { kind: 'applied', team_id: team }])
  t.match(await contactState(service, team, 'ana@example.org'), { status: 'unsubscribed' })
})

t.test('unsubscribes of the same teams in opposite order don’t deadlock', async (t) => {
  const { database } = service
  const teams = [await service.team(), await service.team()].sort()
  const ids = await Promise.all(teams.map((team) => storeEmails(service, team, [['ana@example.org']])))
  const events = teams.map((team_id, index) =>
    reported({ team_id, id: ids[index]?.[0] ?? '' }, { kind: 'unsubscribed', effect: 'unsubscribe' }),
  )
  // Both start while the first account is locked, and wait for it.
  const release = await hold(t, database, (tx) => lockAccount(tx, teams[0] ?? ''))
  let begun = 0
  const both = [events, events.toReversed()].map((batch) =>
    database.transaction((tx) => {
      begun++
      return applyReportedEmails(tx, batch, NOW, { secrets: SECRETS })
    }),
  )
  await until('both wait', () =>
    database.exists(sql.unsafe`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    having count(*) = 2`),
  )
  await release()
  for (const results of await Promise.all(both)) t.ok(results.every(({ kind }) => kind === 'applied'))
  t.equal(begun, 2, 'neither is retried')
})
