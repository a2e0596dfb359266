/** Skipped contacts of a broadcast, with the reason at that time and the change since then. */
import { sql } from 'slonik'
import { string } from 'yup'
import { insertSkips } from '../../../db/messages/broadcasts/skips.sql.ts'
import { row } from '../../../db/postgres/rows.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { mainActs, shows, textOf } from '../../support/dashboard.ts'
import t from '../../support/tap.ts'

const { database, editor, viewer, team, topicOf, contact, templateOf, draft } = await startBroadcastPages(t)

const REASONS = ['unsubscribed', 'suppressed', 'left_topic'] as const

t.test('skips are in the past, with the change of contacts that match now', async (t) => {
  const topic = await topicOf('Skips')
  const path = await draft({ template_id: await templateOf('<p>Hi</p>'), topic_ids: topic })
  const broadcast_id = path.split('/').at(-1) ?? ''
  const contacts = REASONS.flatMap((reason) => [`back.${reason}@example.org`, `out.${reason}@example.org`])
  for (const email of contacts) await contact(email, topic)
  await database.query(sql.unsafe`
    update broadcasts set state = 'sent', started_at = now(), audience = 6, link_base = 'x',
      template_version_id = (select version_id from templates t where t.id = template_id)
    where id = ${broadcast_id}`)
  const ids = await database.any(sql.type(row({ id: string(), email: string() }))`
    select id, email from contacts where team_id = ${team.id} and email like '%.%@example.org'`)
  const skips = ids.map(({ id, email }) => {
    const reason = REASONS.find((each) => email.includes(each)) ?? ('deleted' as const)
    return { team_id: team.id, broadcast_id, contact_id: id, email, reason, detail: '' }
  })
  await insertSkips(database, skips, new Date())
  await database.query(sql.unsafe`
    update contacts set status = 'unsubscribed' where team_id = ${team.id} and email like 'out.%'`)
  const skipped = await editor.get(`${path}/skips`)
  const again = await editor.get(`${path}/again`)
  t.strictSame(mainActs(skipped), [], 'they lack a variable')
  for (const [reason, cause, now] of [
    ['unsubscribed', 'Was unsubscribed', 'but is subscribed now'],
    ['suppressed', 'Was suppressed', 'but no longer is'],
    ['left_topic', 'Had left the topic', 'but has it again'],
  ]) {
    for (const page of [skipped, again]) shows(t, page, `back.${reason}@example.org ${cause} ${now}`)
    t.match(textOf(skipped.html), `out.${reason}@example.org ${cause}`)
    t.notMatch(textOf(skipped.html), `out.${reason}@example.org ${cause} ${now}`)
    t.notMatch(textOf(again.html), `out.${reason}@example.org`)
  }
  shows(t, again, /3 contacts match now .* Unsubscribed or suppressed contacts are left out\./)
  await database.query(sql.unsafe`
    update contacts set properties = '{"name": "Kim"}' where team_id = ${team.id} and email like 'back.%'`)
  t.strictSame(mainActs(await editor.get(`${path}/skips`)), ['Send to the rest'])
  t.notMatch((await viewer.get(`${path}/skips`)).html, /Send to the rest/)
  await database.query(sql.unsafe`
    update contacts set status = 'unsubscribed' where team_id = ${team.id} and email like 'back.%'`)
  t.strictSame(mainActs(await editor.get(`${path}/skips`)), [], 'no one could get it now')
})

t.test('the rest is listed up to 50 contacts, with the number of others', async (t) => {
  const topic = await topicOf('Many')
  const path = await draft({ template_id: await templateOf('<p>Hello</p>'), topic_ids: topic, subject: 'Hi' })
  await database.query(sql.unsafe`
    update broadcasts set state = 'sent', started_at = now(), audience = 0, link_base = 'x',
      template_version_id = (select version_id from templates t where t.id = template_id)
    where id = ${path.split('/').at(-1) ?? ''}`)
  const listed = async () => {
    const { html } = await editor.get(`${path}/again`)
    return { rows: [...textOf(html).matchAll(/Didn’t match but matches now/g)].length, words: textOf(html) }
  }
  for (let nth = 1; nth <= 14; nth++) await contact(`many${nth}@example.org`, topic)
  const few = await listed()
  t.equal(few.rows, 14)
  t.match(few.words, /Send to 14 contacts Recipients Contact Why it wasn’t sent many/)
  for (let nth = 15; nth <= 52; nth++) await contact(`many${nth}@example.org`, topic)
  const many = await listed()
  t.equal(many.rows, 50)
  t.match(many.words, /The first 50 of 52 contacts\. 2 more aren’t listed\./)
})
