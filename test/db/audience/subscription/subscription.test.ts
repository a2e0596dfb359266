/** The effect of unsubscribing, resubscribing and choosing topics: rows, events and audit entries. */
import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import type { By } from '../../../../db/accounts/audit/record.ts'
import { contactByIdentity } from '../../../../db/audience/contacts/contacts.sql.ts'
import { createContact } from '../../../../db/audience/contacts/edit.ts'
import { createTopic } from '../../../../db/audience/contacts/topics.ts'
import { choose, topicsOffered } from '../../../../db/audience/subscription/preferences.ts'
import { topicsOfContact } from '../../../../db/audience/subscription/subscription.sql.ts'
import {
  leaveByLink,
  leaveTopics,
  resubscribe,
  unsubscribe,
} from '../../../../db/audience/subscription/subscription.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { announced, listenTo, report } from '../../../support/contacts.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { hold } from '../../../support/held.ts'
import { lockWaits } from '../../../support/rows.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { until } from '../../../support/worker.ts'

const { database, team: makeTeam } = await openStore(t)
const secrets = createSecrets(SECRET_KEY)
const team = await makeTeam('pro')
await listenTo({ database }, team)

let minutes = 0
/** Runs work in its own transaction, a minute after the previous one. */
const act = <R>(work: (by: By & { secrets: typeof secrets; tx: Tx }) => Promise<R>): Promise<R> => {
  const now = new Date(Date.UTC(2026, 0, 1, 0, ++minutes))
  return database.transaction((tx) => work({ tx, now, actor: 'cli', secrets }))
}
const topic = async (name: string) => (await act((by) => createTopic(by, team, { name }))).id
const [a, b, c, d] = [await topic('a'), await topic('b'), await topic('c'), await topic('d')] as const

let made = 0
const newAddress = () => `c${++made}@example.org`
const makeContact = (email = newAddress(), topic_ids: string[] = []) =>
  act(async (by) => ({ email, id: (await createContact(by, team, { email, topic_ids })).id }))

type Person = { email: string; id: string }

/** Returns a contact, its events, and its audit entries, oldest first. */
async function look({ email, id }: Person) {
  const [contact, topics] = [
    await contactByIdentity(database, team, email),
    await topicsOfContact(database, team, email, 'look'),
  ]
  const news = await announced({ database }, id)
  const entries = await auditEntries(database, { team, action: 'contact', limit: 100 })
  const own = entries.filter(({ subject }) => subject === email || subject === id).toReversed()
  return {
    status: contact?.status,
    topics: topics?.topic_ids.toSorted(),
    left: topics?.left_topic_ids.toSorted(),
    news: news.map(({ type, data }) => [type, ...(data.topic_ids ?? []), data.detail].join(' ').trim()),
    trail: own.map(({ actor, action, detail }) => [actor, action, detail].join(' ').trim()).slice(1),
  }
}

t.test('publishes and records each change once', async (t) => {
  const ana = await makeContact()
  for (const change of [unsubscribe, unsubscribe, resubscribe, resubscribe])
    await act((by) => change(by, team, ana.email))
  t.strictSame(await look(ana), {
    ...{ status: 'subscribed', topics: [], left: [] },
    news: ['contact.unsubscribed', 'contact.resubscribed'],
    trail: ['cli contact.unsubscribe', 'cli contact.resubscribe'],
  })
})

const those = (...chosen: string[]) => ({ chosen, shown: null })

t.test('only contacts can leave or choose topics', async (t) => {
  const nobody = 'nobody@example.org'
  const acts: Parameters<typeof act>[0][] = [
    (by) => unsubscribe(by, team, nobody),
    (by) => resubscribe(by, team, nobody),
    (by) => leaveTopics(by, team, nobody, { topic_ids: [a], by: 'api' }),
  ]
  for (const doing of acts) await t.rejects(() => act(doing), { code: 'contact_not_found' })
  t.equal(await act((by) => choose(by, team, nobody, those(a))), null)
  t.strictSame(await topicsOffered(database, team, nobody), [])
  const ana = await makeContact(undefined, [a, b])
  await report({ database }, { id: team }, ana.email, 'bounced')
  await act((by) => choose(by, team, ana.email, those(a)))
  t.match(await look(ana), { status: 'bounced', topics: [a], left: [b] })
  await act((by) => unsubscribe(by, team, ana.email))
  await act((by) => choose(by, team, ana.email, those(b)))
  t.match(await look(ana), { status: 'unsubscribed', topics: [b], left: [a] })
  await t.rejects(
    act((by) => resubscribe(by, team, ana.email)),
    { code: 'contact_suppressed', message: /is suppressed \(bounced\)/ },
  )
})

t.test('records topics that were left, chosen and offered', async (t) => {
  const ana = await makeContact(undefined, [a, b, c])
  const leave = (...topic_ids: string[]) =>
    act((by) => leaveTopics(by, team, ana.email, { topic_ids, by: 'api' }))
  const link = (topics: string[] | null) => act((by) => leaveByLink(by, team, ana.email, topics))
  const chosen = (...ids: string[]) => act((by) => choose(by, team, ana.email, those(...ids)))
  const gone = (by: string, ...ids: string[]) => ({
    news: [`contact.topics_left ${ids.join(' ')}`],
    trail: [`${by} contact.leave_topics ${ids.join(', ')}`],
  })
  const none = { status: 'unsubscribed' as const, topics: [], left: [a, b, c] }
  const steps: [() => Promise<unknown>, Partial<Awaited<ReturnType<typeof look>>>][] = [
    [() => leave(a.toUpperCase(), d), { topics: [b, c], left: [a], ...gone('api', a) }],
    [() => leave(a), {}],
    [() => link([b]), { topics: [c], left: [a, b], ...gone('recipient', b) }],
    [() => chosen(a, d, 'x'), { topics: [a], left: [b, c], ...gone('recipient', c) }],
    [() => chosen(a), {}],
    [() => chosen(a, b), { topics: [a, b], left: [c] }],
    [
      () => chosen(),
      {
        ...none,
        trail: gone('recipient', a, b).trail,
        news: [...gone('', a, b).news, 'contact.unsubscribed'],
      },
    ],
    [() => chosen(b), { status: 'subscribed', topics: [b], left: [a, c], news: ['contact.resubscribed'] }],
    [() => link(null), { status: 'unsubscribed', news: ['contact.unsubscribed'] }],
  ]
  for (const [index, [doing, change]] of steps.entries()) {
    const before = await look(ana)
    await doing()
    const news = [...before.news, ...(change.news ?? [])]
    const trail = [...before.trail, ...(change.trail ?? [])]
    t.strictSame(await look(ana), { ...before, ...change, news, trail }, `step ${index}`)
  }
  const offered = (await topicsOffered(database, team, ana.email)).map(({ id }) => id)
  t.strictSame(offered, [a, b, c], 'those that it has or has left')
})

t.test('an unsubscribe link works without a contact', async (t) => {
  for (const [wishes, status, topics] of [
    [[null], 'unsubscribed', [a, b]],
    [[[a]], 'subscribed', [b]],
    [[[a], null], 'unsubscribed', [b]],
  ] as const) {
    const email = newAddress()
    for (const wish of wishes) await act((by) => leaveByLink(by, team, email, wish))
    t.match(await look(await makeContact(email, [a, b])), { status, topics })
  }
})

t.test('an unsubscribe link applies to a contact being created', async (t) => {
  const email = newAddress()
  const commit = await hold(t, database, (tx) =>
    createContact({ tx, now: new Date(), actor: null, secrets }, team, { email }),
  )
  const leaving = act((by) => leaveByLink(by, team, email, null))
  await until('the link waits', async () => (await lockWaits({ database })) === 1)
  await Promise.all([commit(), leaving])
  t.match(await contactByIdentity(database, team, email), { status: 'unsubscribed' })
})

t.test('concurrent unsubscribes both apply, each topic once', async (t) => {
  const leave = (by: By, email: string, topic: string) =>
    leaveTopics(by, team, email, { topic_ids: [topic], by: 'api' })
  for (const second of [
    (by: By, email: string): Promise<unknown> => leave(by, email, b),
    (by: By, email: string): Promise<unknown> => choose({ ...by, secrets }, team, email, those()),
  ]) {
    const ana = await makeContact(undefined, [a, b])
    const by = { now: new Date(), actor: 'cli' }
    const commit = await hold(t, database, (tx) => leave({ ...by, tx }, ana.email, a))
    const leaving = act((by) => second(by, ana.email))
    await until('the second waits', async () => (await lockWaits({ database })) === 1)
    await Promise.all([commit(), leaving])
    const { topics, left, news } = await look(ana)
    t.strictSame([topics, left], [[], [a, b]])
    t.strictSame(news.slice(0, 2), [`contact.topics_left ${a}`, `contact.topics_left ${b}`])
  }
})
