/** Skipped contacts of a broadcast, with the reason at that time and the change since then. */
import { sql } from 'slonik'
import { string } from 'yup'
import { insertSkips } from '../../../db/messages/broadcasts/skips.sql.ts'
import { row } from '../../../db/postgres/rows.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { shows, textOf } from '../../support/dashboard.ts'
import t from '../../support/tap.ts'

const { database, editor, team, topicOf, contact, templateOf, draft } = await startBroadcastPages(t)

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
  for (const [reason, cause, now] of [
    ['unsubscribed', 'Was unsubscribed', 'subscribed now'],
    ['suppressed', 'Was suppressed', 'no longer suppressed'],
    ['left_topic', 'Had left the topic', 'has it again'],
  ]) {
    for (const page of [skipped, again]) shows(t, page, `back.${reason}@example.org ${cause} ${now}`)
    t.match(textOf(skipped.html), `out.${reason}@example.org ${cause}`)
    t.notMatch(textOf(skipped.html), `out.${reason}@example.org ${cause} ${now}`)
    t.notMatch(textOf(again.html), `out.${reason}@example.org`)
  }
  shows(t, again, /3 contacts match now .* no one who is unsubscribed or suppressed now\./)
})
