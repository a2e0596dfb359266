/** A message whose content was purged or erased is never sent, because it would be blank. */
import { sql } from 'slonik'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { deliveryState } from '../../../db/delivery/requeue.sql.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { purgeMessages } from '../../../db/maintenance/retention/purge.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { erasePerson } from '../../support/erase.ts'
import { byCli, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, database, deps, cli, team, send } = await world(t)
const GONE =
  /This (email|WhatsApp message) can't be sent again: its content has been deleted, by retention or by an erasure request./

/** Purges all bodies that retention allows. */
const purgeBodies = () => {
  const none = { events: null, messages: null, senders: null, figures: null }
  return purgeMessages(database, { ...none, reports: 30, bodies: 0, files: 3 }, new Date(Date.now() + 60_000))
}

const templateOf = async (html: string): Promise<string> => {
  const name = `T ${html}`
  return (await database.transaction((tx) => saveTemplate(byCli(tx), team.id, { name, html, text: '' }))).id
}

/** An email that the server has rejected. */
async function refused(changes: Record<string, unknown>): Promise<string> {
  const id = await send(changes)
  await database.query(sql.unsafe`update email_states set status = 'bounced' where id = ${id}`)
  return id
}

const requeue = (noun: string, ...flags: string[]) => [noun, 'requeue', team.id, ...flags, '--force']
const wayOf = async (id: string) => requeueWay(await deliveryState(database, EMAIL, { team_id: team.id, id }))

t.test("a purged rejected email isn't sent again, even with force", async (t) => {
  const slots = await templateOf('<p>{{name}}</p>')
  const emptied = [
    await refused({}),
    await refused({ html: undefined, template_id: slots, variables: { name: 'Ana' } }),
  ]
  const whole = await refused({ html: undefined, template_id: await templateOf('<p>No slots</p>') })
  await purgeBodies()
  for (const id of emptied) {
    t.match(await cli.fault(requeue('email', id)), GONE)
    t.equal(await wayOf(id), null)
  }
  t.strictSame((await cli.json(requeue('email', '--status', 'bounced'))).ids, [whole])
})

t.test("an erased email isn't sent", async (t) => {
  const ids = [
    await refused({ to: ['ana@example.org'] }),
    await refused({
      to: ['Ana <ana@example.org>'],
      html: undefined,
      template_id: await templateOf('<p>Hi</p>'),
    }),
  ]
  await erasePerson({ ...deps, database }, team.id, 'ana@example.org')
  for (const id of ids) t.match(await cli.fault(requeue('email', id)), GONE)
  t.strictSame((await cli.json(requeue('email', '--status', 'bounced'))).ids, [])
})

t.test("an expired and purged email isn't sent", async (t) => {
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const id = await send({ scheduled_at: at, expires_in: 60 })
  await database.query(sql.unsafe`
    update email_states set due_at = null, scheduled_at = now(), expires_at = now(), expired_at = now()
    where id = ${id}`)
  t.equal(await wayOf(id), 'expired')
  await purgeBodies()
  t.match(await cli.fault(requeue('email', id)), GONE)
})

t.test("doesn't resend a WhatsApp message without its parameters", async (t) => {
  const { id: template } = await makeTemplate(service, team.id)
  const [id = ''] = await sendWhatsapp(service, team, template)
  await database.query(sql.unsafe`update whatsapp_messages set status = 'failed' where id = ${id}`)
  t.equal(requeueWay(await deliveryState(database, WHATSAPP, { team_id: team.id, id })), 'forced')
  await purgeBodies()
  t.match(await cli.fault(requeue('whatsapp', id)), GONE)
  t.strictSame((await cli.json(requeue('whatsapp', '--status', 'failed'))).ids, [])
})

t.test("a purged email can't be copied or resent", async (t) => {
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const id = await refused({})
  await purgeBodies()
  for (const [act, form] of [
    ['copy', {}],
    ['resend', { to: 'right@example.org' }],
  ] as const) {
    const answer = await editor.post(`/teams/${team.id}/emails/${id}/${act}`, form)
    t.equal(answer.status, 400)
    shows(t, answer, /its content has been deleted/)
  }
})
