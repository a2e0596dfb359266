/** Each change of a contact's status over the API, and the unsubscribe call for an address. */
import fc from 'fast-check'
import { changeContact } from '../../db/audience/contacts/edit.ts'
import { createTopic, removeTopic } from '../../db/audience/contacts/topics.ts'
import { report } from '../support/contacts.ts'
import { hold } from '../support/held.ts'
import { lockWaits } from '../support/rows.ts'
import { byCli, type Reply, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { until } from '../support/worker.ts'

const UNKNOWN = '00000000-0000-7000-8000-000000000000'

const { service, call, database, team } = await world(t, { lockTimeout: 30_000 })
const { key } = team

let made = 0
async function contact(fields: Record<string, unknown> = {}) {
  const email = `c${++made}@example.org`
  const { body } = await call('POST', '/v1/contacts', { key, body: { email, ...fields } })
  return body
}
const show = async (email: string) => (await call('GET', `/v1/contacts/${email}`, { key })).body
const change = (email: string, verb: 'unsubscribe' | 'resubscribe'): Promise<Reply> =>
  call('POST', `/v1/contacts/${email}/${verb}`, { key })
const marketing = (body: unknown, credential = key): Promise<Reply> =>
  call('POST', '/v1/marketing/unsubscribe', { key: credential, body })
const refused = ({ status, body }: Reply): [number, string] => [status, body.error?.code]
const topic = async (name: string): Promise<string> =>
  (await createTopic(byCli(database), team.id, { name })).id

t.test('subscribed → unsubscribed: returns the contact', async (t) => {
  const before = await contact({ properties: { a: '1' } })
  const { status, body } = await change(before.email.toUpperCase(), 'unsubscribe')
  t.equal(status, 200)
  t.strictSame(body, { ...before, status: 'unsubscribed', updated_at: body.updated_at })
  t.ok(body.updated_at > before.updated_at)
  t.strictSame(await show(before.email), body)
})

t.test('unsubscribed → unsubscribed: a repeated call changes nothing', async (t) => {
  const { email } = await contact()
  const { body } = await change(email, 'unsubscribe')
  const again = await change(email, 'unsubscribe')
  t.strictSame([again.status, again.body], [200, body])
})

t.test('unsubscribed → subscribed: resubscribe returns the contact', async (t) => {
  const { email } = await contact()
  await change(email, 'unsubscribe')
  const { status, body } = await change(email, 'resubscribe')
  t.strictSame([status, body.status], [200, 'subscribed'])
  t.strictSame(await show(email), body)
})

t.test('subscribed → subscribed: resubscribe changes nothing', async (t) => {
  const before = await contact()
  const { status, body } = await change(before.email, 'resubscribe')
  t.strictSame([status, body], [200, before])
})

for (const suppression of ['bounced', 'complained'] as const) {
  t.test(`${suppression}: resubscribe is 409 contact_suppressed and changes nothing`, async (t) => {
    const { email } = await contact()
    await report(service, team, email, suppression)
    const before = await show(email)
    t.strictSame(refused(await change(email, 'resubscribe')), [409, 'contact_suppressed'])
    t.strictSame(await show(email), before)
  })

  t.test(`${suppression} → unsubscribed: the suppression is kept`, async (t) => {
    for (const unsubscribe of [
      (email: string) => change(email, 'unsubscribe'),
      (email: string) => marketing({ email }),
    ]) {
      const { email } = await contact()
      await report(service, team, email, suppression)
      t.ok((await unsubscribe(email)).status < 300)
      t.equal((await show(email)).status, 'unsubscribed')
      t.strictSame(refused(await change(email, 'resubscribe')), [409, 'contact_suppressed'])
      await unsubscribe(email)
      t.strictSame(refused(await change(email, 'resubscribe')), [409, 'contact_suppressed'])
      t.equal((await show(email)).status, 'unsubscribed')
    }
  })
}

t.test('a complaint is kept after a bounce and another unsubscribe', async (t) => {
  const { email } = await contact()
  for (const found of ['complained', 'bounced'] as const) {
    await report(service, team, email, found)
    await change(email, 'unsubscribe')
  }
  const { status, body } = await change(email, 'resubscribe')
  t.equal(status, 409)
  t.match(body.error.message, /is suppressed \(complained\)/)
})

t.test('keeps a suppression in any order of calls', async (t) => {
  const step = fc.constantFrom('unsubscribe', 'resubscribe', 'marketing', 'patch', 'bounced', 'complained')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const { email } = await contact()
      let [status, suppressed] = ['subscribed', false]
      for (const each of steps) {
        if (each === 'bounced' || each === 'complained') {
          await report(service, team, email, each)
          if (status !== 'complained') status = each
          suppressed = true
        } else if (each === 'patch') {
          await call('PATCH', `/v1/contacts/${email}`, { key, body: { properties: { a: 'b' } } })
        } else if (each === 'resubscribe') {
          t.equal((await change(email, 'resubscribe')).status, suppressed ? 409 : 200)
          if (!suppressed) status = 'subscribed'
        } else {
          await (each === 'marketing' ? marketing({ email }) : change(email, 'unsubscribe'))
          status = 'unsubscribed'
        }
        t.equal((await show(email)).status, status)
      }
    }),
    { numRuns: 30 },
  )
})

t.test('marketing unsubscribe without topic_ids unsubscribes with 204', async (t) => {
  const { email } = await contact()
  const { status, body, headers } = await marketing({ email: ` ${email.toUpperCase()} ` })
  t.strictSame([status, body, headers.get('content-type')], [204, '', null])
  t.equal((await show(email)).status, 'unsubscribed')
  const second = await contact()
  t.equal((await marketing({ email: second.email, topic_ids: null })).status, 204)
  t.equal((await show(second.email)).status, 'unsubscribed', 'null is absent')
})

t.test('marketing unsubscribe with topic_ids only removes those topics', async (t) => {
  const [a, b, c] = [await topic('a'), await topic('b'), await topic('c')]
  const before = await contact({ topic_ids: [c, a, b] })
  const { email } = before
  t.equal((await marketing({ email, topic_ids: [a.toUpperCase(), a, UNKNOWN] })).status, 204)
  const after = await show(email)
  t.strictSame(after, { ...before, subscribed_topic_ids: [c, b], updated_at: after.updated_at })
  t.ok(after.updated_at > before.updated_at)
  for (const topic_ids of [[], [UNKNOWN], [a]]) {
    t.equal((await marketing({ email, topic_ids })).status, 204)
    t.strictSame(await show(email), after, 'changes nothing')
  }
})

t.test('an invalid email is bad_request, an unknown one contact_not_found', async (t) => {
  for (const body of [{ email: 'no address' }, { email: 'a@b' }, []])
    t.strictSame(refused(await marketing(body)), [400, 'bad_request'], JSON.stringify(body))
  for (const fields of [{}, { topic_ids: [] }, { topic_ids: [UNKNOWN] }])
    t.equal(refused(await marketing({ email: 'no@example.org', ...fields })).join(), '404,contact_not_found')
})

t.test('deleting a topic removes it from contacts, also concurrent ones', async (t) => {
  const kept = await topic('kept')
  for (let round = 0; round < 5; round++) {
    const gone = await topic(`gone ${round}`)
    const first = await contact({ topic_ids: [gone, kept] })
    const others = await Promise.all([
      contact({ topic_ids: [gone] }),
      database.transaction((tx) => removeTopic(byCli(tx), team.id, gone)),
      contact({ topic_ids: [gone] }),
      call('PATCH', `/v1/contacts/${first.email}`, { key, body: { topic_ids: [kept, gone] } }),
    ])
    t.equal(others.length, 4)
    const { body } = await call('GET', '/v1/contacts?limit=100', { key })
    t.notOk(
      body.data.some((each: { subscribed_topic_ids: string[] }) => each.subscribed_topic_ids.includes(gone)),
    )
    t.strictSame((await show(first.email)).subscribed_topic_ids, [kept])
  }
})

t.test('deleting a topic removes it from a contact just added', async (t) => {
  const gone = await topic('put on and removed')
  const { email } = await contact()
  const commit = await hold(t, database, (tx) =>
    changeContact(byCli(tx), team.id, email, { topic_ids: [gone] }),
  )
  const removal = database.transaction((tx) => removeTopic(byCli(tx), team.id, gone))
  await until('the removal waits', async () => (await lockWaits(service)) === 1)
  await Promise.all([commit(), removal])
  t.strictSame((await show(email)).subscribed_topic_ids, [])
})
