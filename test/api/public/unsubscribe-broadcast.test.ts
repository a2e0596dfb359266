/**
 * The links of broadcasts. They work for the recipient even if the contact was deleted, and their changes
 * cause webhooks.
 */
import { sql } from 'slonik'
import { string } from 'yup'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { expandStep } from '../../../db/messages/broadcasts/expand.ts'
import { countUnreached } from '../../../db/messages/broadcasts/resend.sql.ts'
import { sendToUnreached } from '../../../db/messages/broadcasts/resend.ts'
import { removeEmails } from '../../../db/messages/emails/remove.ts'
import { idRow, row } from '../../../db/postgres/rows.ts'
import { type Broadcasting, beginBroadcasting, broadcastingOf } from '../../support/broadcasting.ts'
import { deleteEmailRows } from '../../support/email-rows.ts'
import { EMPTY } from '../../support/empty.ts'
import { erasePerson } from '../../support/erase.ts'
import { makeTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
const ONE_CLICK = 'List-Unsubscribe=One-Click'
const ANA = 'ana@example.org'
const BRAKES = { bounce_percent: 5, complaint_percent: 0.1 }

const place = await beginBroadcasting(t)
const { service } = place
const { call, database, deps } = service

/** Scans a broadcast to its end. */
async function walked({ team }: Broadcasting, id: string): Promise<void> {
  for (let round = 0; round < 3; round += 1)
    await database.transaction((tx) => expandStep({ ...deps, tx, ahead: 100, brakes: BRAKES }, team.id, id))
}

/** Starts a broadcast of the team. @returns the path of the link in Ana's email */
async function linkToAna(of: Broadcasting): Promise<{ id: string; link: string }> {
  const id = await of.create()
  await of.post(id, 'send')
  await walked(of, id)
  const { variables } = await database.one(sql.type(row({ variables: string() }))`
    select variables::text from emails where broadcast_id = ${id} and to_emails = ${sql.array([ANA], 'text')}`)
  return { id, link: new URL(JSON.parse(variables).unsubscribe_url).pathname }
}

/** Creates another team with Ana in its topic, and her link. */
async function mailed() {
  const of = await broadcastingOf(service, await makeTeam(service))
  await of.contacts(['ana'])
  const { key } = of.team
  const sent = await linkToAna(of)
  const press = (raw: string) => call('POST', sent.link, { raw, headers: FORM })
  const contact = async () => (await call('GET', `/v1/contacts/${ANA}`, { key })).body
  const remove = () => call('DELETE', `/v1/contacts/${ANA}`, { key })
  const make = () =>
    call('POST', '/v1/contacts', { key, body: { email: ANA.toUpperCase(), topic_ids: [of.topic_id] } })
  return { ...of, ...sent, key, press, contact, remove, make }
}

t.test('an unsubscribe applies to a contact created again', async (t) => {
  for (const [raw, holds] of [
    [ONE_CLICK, { status: 'subscribed', subscribed_topic_ids: [] }],
    ['scope=everything', { status: 'unsubscribed' }],
  ] as const) {
    const before = await mailed()
    await before.remove()
    await before.make()
    // The link needs neither the contact nor the email. Both have been deleted.
    await deleteEmailRows(service, sql.fragment`broadcast_id = ${before.id}`)
    t.match(await before.press(raw), { status: 200, body: /ANA@EXAMPLE.ORG/ })
    t.match(await before.contact(), holds, 'made again before the press')

    const after = await mailed()
    await after.remove()
    t.match(await after.press(raw), { status: 200, body: /You aren’t subscribed/ })
    t.match(await after.make(), { status: 201, body: holds }, 'made again after the press, in the 201 too')
    t.match(await after.contact(), holds)
    const next = await after.create()
    t.match(await after.post(next, 'send'), {
      status: 409,
      body: { error: { message: /audience is empty/ } },
    })
  }
})

t.test('topics chosen without a contact apply to a later one', async (t) => {
  const holds = async (raw: (topic: string) => string) => {
    const { topic_id, press, remove, make } = await mailed()
    await remove()
    t.match(await press(raw(topic_id)), { status: 200, body: /You aren’t subscribed/ })
    const { status, subscribed_topic_ids } = (await make()).body
    return [status, subscribed_topic_ids.includes(topic_id)]
  }
  t.strictSame(await holds((topic) => `scope=topics&topic=${topic}`), ['subscribed', true], 'all is kept')
  t.strictSame(await holds((topic) => `scope=topics&topic=${topic}x`), ['subscribed', false])
  t.equal((await holds(() => 'scope=topics'))[0], 'unsubscribed', 'nothing is kept')
  t.strictSame(await holds((topic) => `${ONE_CLICK}&topic=${topic}`), ['subscribed', false])
})

t.test('an unsubscribe without a contact lasts until the opposite choice', async (t) => {
  const everything = 'scope=everything'
  const again = async ({ remove, make }: Awaited<ReturnType<typeof mailed>>, times = 1) => {
    for (let round = 1; round < times; round += 1) await remove().then(make)
    await remove()
    return (await make()).body
  }
  const left = { status: 'subscribed', subscribed_topic_ids: EMPTY }
  const ways = {
    resubscribed: ({ key }) => call('POST', `/v1/contacts/${ANA}/resubscribe`, { key }),
    'who chose the topic': ({ press, topic_id }) => press(`scope=topics&topic=${topic_id}`),
  } satisfies Record<string, (of: Awaited<ReturnType<typeof mailed>>) => unknown>
  for (const [way, act] of Object.entries(ways)) {
    const of = await mailed()
    await of.remove()
    await of.press(everything)
    t.match(await again(of, 3), { status: 'unsubscribed' }, 'however often it is made')
    await act(of)
    t.match(await again(of), { status: 'subscribed', subscribed_topic_ids: [of.topic_id] }, way)
  }
  const of = await mailed()
  await of.remove()
  for (const wish of [ONE_CLICK, everything]) await of.press(wish)
  await of.make()
  await ways.resubscribed(of)
  t.match(await again(of), left, 'resubscribed, it is not in the topic that it had left')
  await ways['who chose the topic'](of)
  t.match(await again(of), { status: 'subscribed', subscribed_topic_ids: [of.topic_id] })
})

t.test('an unsubscribe wins over a concurrent creation of the contact', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const { press, remove, make, contact } = await mailed()
    await remove()
    const [pressed] = await Promise.all([press(ONE_CLICK), make()])
    t.equal(pressed.status, 200)
    t.strictSame((await contact()).subscribed_topic_ids, [])
  }
})

t.test('leaving topics causes one webhook and one audit entry', async (t) => {
  const { team, topic_id, press, contact, key } = await mailed()
  await database.query(sql.unsafe`
    insert into webhook_endpoints (team_id, id, url, name, types, secret, state, created_at)
    values (${team.id}, gen_random_uuid(), 'https://hooks.example.com/', 'hooks', '{*}', '', 'enabled', now())`)
  const heard = async () =>
    (
      await database.any(sql.type(row({ body: string() }))`
        select body from webhook_messages where team_id = ${team.id} and type like 'contact.%' order by id`)
    ).map(({ body }) => JSON.parse(body))
  const { id } = await contact()
  for (let round = 0; round < 2; round += 1) await press(ONE_CLICK)
  const left = { type: 'contact.topics_left', data: { contact_id: id, email: ANA, topic_ids: [topic_id] } }
  t.match(await heard(), [left])
  const trail = await auditEntries(database, { team: team.id, action: 'contact.leave_topics', limit: 9 })
  t.match(trail, [{ actor: 'recipient', subject: id, detail: topic_id }])
  t.equal(trail.length, 1)
  await call('PATCH', `/v1/contacts/${ANA}`, { key, body: { topic_ids: [topic_id] } })
  const body = { email: ANA, topic_ids: [topic_id] }
  t.equal((await call('POST', '/v1/marketing/unsubscribe', { key, body })).status, 204)
  t.match(await heard(), [left, left])
  t.match(await auditEntries(database, { team: team.id, action: 'contact.leave_topics', limit: 9 }), [
    { actor: 'api' },
    { actor: 'recipient' },
  ])
})

t.test("the page only shows the contact's current and left topics", async (t) => {
  const { link, team, topic_id, press, contact, key } = await mailed()
  const others = await broadcastingOf(service, team)
  const boxes = async () =>
    [
      ...(await call('GET', `${link}?preferences=1`)).body.matchAll(/topic" value="([\w-]{36})"( checked)?/g),
    ].map(([, id, on]) => [id, on !== undefined])
  t.strictSame(await boxes(), [[topic_id, true]])
  await press(ONE_CLICK)
  t.strictSame(await boxes(), [[topic_id, false]])
  await press(`scope=topics&topic=${others.topic_id}`)
  t.match(await contact(), { subscribed_topic_ids: EMPTY }, 'what was not offered cannot be chosen')
  await press(`scope=topics&topic=${topic_id}`)
  t.match(await contact(), { status: 'subscribed', subscribed_topic_ids: [topic_id] })
  await call('PATCH', `/v1/contacts/${ANA}`, { key, body: { topic_ids: [topic_id, others.topic_id] } })
  t.strictSame(await boxes(), [
    [topic_id, true],
    [others.topic_id, true],
  ])
})

t.test('saving the page keeps topics added since it was shown', async (t) => {
  const { link, team, topic_id, press, contact, key } = await mailed()
  const others = await broadcastingOf(service, team)
  const page: string = (await call('GET', `${link}?preferences=1`)).body
  const [, shown = ''] = /name="shown" value="([^"]+)"/.exec(page) ?? []
  t.equal(shown, topic_id)
  await call('PATCH', `/v1/contacts/${ANA}`, { key, body: { topic_ids: [topic_id, others.topic_id] } })
  await press(`scope=topics&shown=${shown}&topic=${topic_id}`)
  t.match(await contact(), { status: 'subscribed', subscribed_topic_ids: [topic_id, others.topic_id] })
  await press(`scope=topics&shown=${shown}`)
  t.match(await contact(), { status: 'unsubscribed', subscribed_topic_ids: [others.topic_id] })
  await press(`scope=topics&shown=${shown}+${others.topic_id}&topic=${topic_id}`)
  t.match(await contact(), { status: 'subscribed', subscribed_topic_ids: [topic_id] })
})

t.test('a broadcast never reaches an address twice', async (t) => {
  const of = await mailed()
  const { id, team, remove, make, contacts, key } = of
  await database.query(sql.unsafe`update email_states set status = 'sent' where broadcast_id = ${id}`)
  await walked(of, id)
  await remove()
  await make()
  const rest = async () => {
    const row = await broadcastById(database, team.id, id)
    return row ? (await countUnreached(database, row, [])).audience : null
  }
  const again = () =>
    database.transaction((tx) =>
      sendToUnreached({ ...deps, tx, now: new Date(), actor: 'ana' }, { team_id: team.id, domain: null }, id),
    )
  t.equal(await rest(), 0)
  await t.rejects(again(), /sent to all matching contacts/)
  await contacts(['new'])
  t.equal(await rest(), 1)
  await again()
  await walked(of, id)
  const addressed = () =>
    database.any(sql.unsafe`select to_emails[1] as email from emails where broadcast_id = ${id} order by 1`)
  t.match(await addressed(), [{ email: ANA }, { email: 'new@example.org' }])
  // Emails that were deleted manually were still received.
  const emails = await database.any(sql.type(idRow)`
    select id from emails where broadcast_id = ${id}`)
  await database.transaction((tx) =>
    removeEmails(
      { tx },
      team.id,
      emails.map((email) => email.id),
    ),
  )
  for (const name of [ANA, 'new@example.org']) await call('DELETE', `/v1/contacts/${name}`, { key })
  await contacts(['ana', 'new'])
  t.equal(await rest(), 0)
})

t.test('an unsubscribe from topics is kept after an erasure', async (t) => {
  const { team, press, make } = await mailed()
  await press(ONE_CLICK)
  await erasePerson({ ...deps, database }, team.id, ANA)
  t.match(await make(), { status: 201, body: { status: 'subscribed', subscribed_topic_ids: EMPTY } })
})
