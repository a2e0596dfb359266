/**
 * Messages that version 0.1.0 can't send, because they need media, named parameters or a team's number. Its
 * processes still run during an upgrade and must leave them alone.
 */
import { sql } from 'slonik'
import { boolean, string } from 'yup'
import { readTemplate } from '../../../db/messages/whatsapp/save-template.ts'
import { idRow, nameRow, row } from '../../../db/postgres/rows.ts'
import type { CloudMessage } from '../../sandbox/whatsapp.ts'
import { startNumbers } from '../../support/number-senders.ts'
import t from '../../support/tap.ts'
import { aTemplate, type Json } from '../../support/whatsapp.ts'
import { answering } from '../../support/whatsapp-delivery.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, database, cli, sender, begin } = await startNumbers(t)

const IMAGE = aTemplate({ header: { format: 'IMAGE' } })
const NAMED = aTemplate(
  {},
  { parameter_format: 'NAMED', components: [{ type: 'BODY', text: 'Hello {{name}}' }] },
)
const PICTURE = { 'header:1': 'https://cdn.example.com/a.png', 'body:1': 'Ana' }

const reasonRow = row({ unsupported: string().nullable() })
const queuesOf = (id: string) =>
  database.anyFirst(sql.type(nameRow)`select name from pgboss.job where id = ${id} and state < 'completed'`)

/** Statements of version 0.1.0 that give a message a job of the default number's queue. */
const OLD = {
  release: (id: string) =>
    database.any(sql.type(idRow)`
      update whatsapp_messages m set due_at = null, tries_from = due_at where id = ${id} returning m.id`),
  requeue: (id: string) =>
    database.any(sql.type(idRow)`
      update whatsapp_messages m set requeued_at = now(), tries_from = now(),
        status = case when status = 'queued' then m.status else 'queued' end
      where id = ${id} returning m.id`),
  giveBack: (id: string) =>
    database.query(sql.unsafe`
      update whatsapp_messages set accepted_at = null, provider_message_id = null, requeued_at = now()
      where id = ${id} and status = 'queued'`),
  accept: (team: string) =>
    database.any(sql.type(idRow)`
      insert into whatsapp_messages (
        team_id, id, request_id, position, recipient, country, created_at, scheduled_at, expires_at, due_at, status)
      values (${team}, gen_random_uuid(), gen_random_uuid(), 0, '+15555550101', null, now(), null, null, null, 'queued')
      returning id`),
}

t.test('a waiting message fails if its template needs media', async (t) => {
  const { cloud, work } = await begin(t, ({ body }) =>
    body.template?.components?.some(({ type }) => type === 'header') ? answering(132000) : undefined,
  )
  const { team, template, send } = await sender({ own: false })
  const [id = ''] = await send()
  const { parts, slots } = readTemplate(IMAGE)
  await database.query(sql.unsafe`
    update whatsapp_templates set parts = ${JSON.stringify(parts)}, slots = ${sql.array(slots, 'text')}
    where id = ${template.id}`)
  t.strictSame(await queuesOf(id), ['deliver-whatsapp'])
  await work()
  const show = () => cli.json(['whatsapp', 'show', team.id, id])
  await until('it failed', async () => (await show()).status === 'failed')
  t.equal(cloud.messages().length, 1)
})

t.test('version 0.1.0 only gives jobs to messages it sends', async (t) => {
  const { from, cloud } = await begin(t)
  const [plain, numbered] = [await sender({ own: false }), await sender()]
  const [media, named] = [
    await sender({ own: false, definition: IMAGE }),
    await sender({ own: false, definition: NAMED }),
  ]
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
  let later = 0
  for (const [{ send, team }, queue, parameters] of [
    [plain, 'deliver-whatsapp', { 'body:1': 'Ana' }],
    [media, 'deliver-whatsapp-parts', PICTURE],
    [named, 'deliver-whatsapp-parts', { 'body:1': 'Ana' }],
    [numbered, 'deliver-whatsapp-number', { 'body:1': 'Ana' }],
  ] as const) {
    const isOwn = queue === 'deliver-whatsapp'
    const [waiting = ''] = await send({ parameters })
    t.strictSame(await queuesOf(waiting), [queue])
    t.equal((await OLD.requeue(waiting)).length, isOwn ? 1 : 0, `requeue, ${queue}`)
    const [timed = ''] = await send({ parameters, scheduled_at })
    t.equal((await OLD.release(timed)).length, isOwn ? 1 : 0, `release, ${queue}`)
    if (isOwn) continue
    const [back = ''] = await send({ parameters })
    await database.query(sql.unsafe`delete from pgboss.job where id = ${back}`)
    await database.query(sql.unsafe`
      update whatsapp_messages set accepted_at = now(), provider_message_id = ${back} where id = ${back}`)
    await OLD.giveBack(back)
    t.strictSame(
      await database.one(sql.type(row({ is_open: boolean(), unfinished: boolean() }))`
        select due_at is null as is_open, unfinished from whatsapp_messages where id = ${back}`),
      { is_open: false, unfinished: false },
      'a job that version 0.1.0 makes finds nothing',
    )
    await cli.json(['whatsapp', 'requeue', team.id, timed, '--force'])
    later += 3
  }
  await startWorker(t, service, { whatsapp: cloud.delivery, scheduled: true })
  const isOther = ({ body }: CloudMessage) => !String(body.biz_opaque_callback_data).startsWith(plain.team.id)
  await until('all have left', () => cloud.messages().filter(isOther).length === later)
  t.equal(from(numbered.phone_number_id).length, 3)
})

t.test('version 0.1.0 rejects new templates and teams with numbers', async (t) => {
  await begin(t)
  const [plain, numbered] = [await sender({ own: false }), await sender()]
  t.equal((await OLD.accept(plain.team.id)).length, 1)
  await t.rejects(OLD.accept(numbered.team.id), { code: '55P03' })
  const reasonOf = async (definition: Json | undefined) => {
    const { template } = await sender({ own: false, ...(definition ? { definition } : {}) })
    return database.oneFirst(
      sql.type(reasonRow)`select unsupported from whatsapp_templates where id = ${template.id}`,
    )
  }
  t.equal(await reasonOf(undefined), null)
  for (const definition of [IMAGE, NAMED]) t.ok(await reasonOf(definition))
})
