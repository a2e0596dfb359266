/** Shows and replays emails whose contents were deleted, by retention or an erasure. */
import { sql } from 'slonik'
import { NIL } from 'uuid'
import { CHANNELS } from '../../db/channels/channels.sql.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { purgeMessages } from '../../db/maintenance/retention/purge.ts'
import { deleteMessages, sharesRequests } from '../../db/maintenance/retention/retention.sql.ts'
import { firstIdAt } from '../../db/validation/ids.ts'
import { signedIn } from '../support/dashboard.ts'
import { KEPT } from '../support/retention.ts'
import { anEmail, byCli, world } from '../support/service.ts'
import t, { type Test } from '../support/tap.ts'
import { aMessage, makeTemplate, numbers } from '../support/whatsapp.ts'

const HTML = '<p>Dear {{name}}, welcome</p>'
const DAY = 86_400_000

/** A raw email and one of a template, each with a key. Both bounced a hundred days ago. */
async function refusedLongAgo(t: Test) {
  const made = await world(t)
  const { database, call, team, key } = made
  const parts = { name: 'Welcome', html: HTML, text: 'Dear {{name}}' }
  const template = await saveTemplate(byCli(database), team.id, parts)
  const filled = { template_id: template.id, variables: { name: 'Ana' } }
  const send = (own: string, changes = {}) =>
    call('POST', '/v1/emails', { key, body: anEmail({ ...changes, idempotency_key: own }) })
  await send('raw')
  const templated = (await send('templated', filled)).body.id as string
  await database.query(sql.unsafe`update email_states set status = 'bounced'`)
  await database.query(sql.unsafe`update teams set created_at = now() - interval '1 day'`)
  const purge = () => purgeMessages(database, { ...KEPT, bodies: 90 }, new Date(Date.now() + 100 * DAY))
  return { ...made, templated, send: (own: string) => send(own, filled), purge }
}

t.test('after retention, a template email shows its template without variables', async (t) => {
  const { service, team_id, cli, templated, send, purge } = await refusedLongAgo(t)
  t.match(await purge(), { bodies: 2 })
  const left = { id: templated, html: '<p>Dear , welcome</p>', body_text: 'Dear ' }
  t.match(await send('templated'), { status: 200, body: left })
  t.match(await cli.json(['email', 'show', team_id, templated]), left)
  const viewer = await signedIn(service, { team: team_id, role: 'viewer' })
  t.equal((await viewer.get(`/teams/${team_id}/emails/${templated}`)).status, 200)
})

t.test('an erased template email shows its template without variables', async (t) => {
  const { team_id, cli, templated, send } = await refusedLongAgo(t)
  await cli.json(['contact', 'erase', team_id, 'someone@example.org'])
  t.match(await send('templated'), { status: 200, body: { id: templated, html: '<p>Dear , welcome</p>' } })
})

t.test('a WhatsApp key is free once its messages are deleted', async (t) => {
  const { service, database, team_id, key, call } = await world(t)
  const template = await makeTemplate(service, team_id)
  const body = aMessage(template.id, { to: numbers(3), idempotency_key: 'once' })
  const send = () => call('POST', '/v1/whatsapp/messages', { key, body })
  t.equal((await send()).status, 201)
  await database.query(sql.unsafe`
    update whatsapp_messages set status = 'delivered', created_at = now() - interval '100 days'`)
  const [channel] = CHANNELS.filter(sharesRequests)
  if (!channel) throw new Error('one channel has requests')
  const until = new Date()
  const purge = (limit: number) =>
    deleteMessages(database, team_id, channel, {
      after: NIL,
      before: firstIdAt(new Date(Date.now() + DAY)),
      until,
      limit,
    })
  t.match(await purge(2), { found: 2 })
  t.match(await send(), { status: 200, body: { data: [{ status: 'delivered' }] } }, 'one is left')
  t.match(await purge(2), { found: 1 })
  t.equal((await send()).status, 201)
})
