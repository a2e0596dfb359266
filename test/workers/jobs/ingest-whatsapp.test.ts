/** Errors that the provider only reports by webhook. Real hook, real queue, real workers. */
import { pausedSenders } from '../../../db/delivery/senders/senders.sql.ts'
import { applyWhatsappEvents } from '../../../db/messages/whatsapp/apply-events.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { statusWebhook } from '../../sandbox/whatsapp.ts'
import { startCloud } from '../../support/cloud.ts'
import { settled } from '../../support/ingestion.ts'
import { loseJobs, storedReports } from '../../support/reports.ts'
import { reserveOne } from '../../support/senders.ts'
import { type Service, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t from '../../support/tap.ts'
import {
  aMessage,
  aTemplate,
  type Json,
  jobOf,
  makeTemplate,
  postUpdates,
  rowsOf,
  templateOf,
} from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

t.test('a reported failure disables the template and pauses the number', async (t) => {
  const { service, database, call, team_id: team, key } = await worldOf(await renewed())
  const template = await makeTemplate(service, team)
  const send = async () =>
    (await call('POST', '/v1/whatsapp/messages', { key, body: aMessage(template.id) })).body
  const { data } = await send()
  await reserveOne(database, { key: 'whatsapp:100', ceiling: 80 }, [1], 1)
  await startWorker(t, service)
  const fail = async (id: string, code: number, seconds_ago: number): Promise<void> => {
    const reported = statusWebhook('100', [
      {
        id,
        status: 'failed',
        recipient_id: '15555550101',
        biz_opaque_callback_data: `${team}:${data[0].id}`,
        timestamp: String(Math.floor(Date.now() / 1_000) - seconds_ago),
        errors: [{ code, title: 'Words' }],
      },
    ])
    t.equal((await postUpdates(service, reported)).status, 200)
    await until('it is read', () => settled(service))
  }
  const pauses = () => pausedSenders(database)

  await fail('wamid.1', 131042, 301)
  t.same(await pauses(), [], 'too old: its pause would be over')
  /** The effect of a response: accepted, and its job ended. */
  const accept = async (provider_message_id: string): Promise<void> => {
    const event = {
      event_key: provider_message_id,
      kind: 'accepted',
      occurred_at: new Date(),
      detail: '',
    } as const
    const ref = { team_id: team, message_id: data[0].id }
    await database.transaction((tx) => applyWhatsappEvents(tx, [{ ...ref, ...event, provider_message_id }]))
    await loseJobs(service, [data[0].id])
  }
  await accept('wamid.2')
  await fail('wamid.other', 131042, 0)
  t.match(await rowsOf(service, team), [{ provider_message_id: 'wamid.2' }], 'of an earlier try')
  await fail('wamid.2', 131042, 0)
  t.match(await pauses(), [{ sender: 'whatsapp:100', reason: '131042 Words' }])
  t.match(
    await rowsOf(service, team),
    [{ status: 'queued', accepted_at: null, provider_message_id: null }],
    'an account at fault fails no message',
  )
  t.match(await jobOf(service, data[0].id), { state: 'created' }, 'it is to be sent again')
  t.match(await templateOf(service, template.id), { status: 'approved', fault: null })
  await accept('wamid.3')
  await fail('wamid.3', 132015, -2)
  t.match(await templateOf(service, template.id), { status: 'paused', fault: '132015 Words' })
  t.equal((await send()).error.code, 'template_disabled')
  t.match(await rowsOf(service, team), [{ status: 'queued' }], 'it waits for its template')
})

/** Posts template updates like the provider, and waits until they are read. */
async function report(
  service: Service,
  { field, value, time }: { field: string; value: Json; time: number },
): Promise<void> {
  await postUpdates(service, { entry: [{ id: '1', time, changes: [{ field, value }] }] })
  await until('it is read', () => settled(service))
}

t.test('a future-dated template update doesn’t override later ones', async (t) => {
  const { service, team_id: team } = await worldOf(await renewed())
  const definition = aTemplate()
  const { id } = await makeTemplate(service, team, definition)
  await startWorker(t, service)
  const about = { message_template_name: definition.name, message_template_language: definition.language }
  const reportState = async (event: string, time: number) =>
    await report(service, { field: 'message_template_status_update', value: { ...about, event }, time })
  await reportState('DISABLED', Date.parse('2999-01-01') / 1_000)
  t.match(await templateOf(service, id), { status: 'disabled' })
  await reportState('APPROVED', Math.floor(Date.now() / 1_000) + 2)
  t.match(await templateOf(service, id), { status: 'approved' })
})

t.test('a template with changed components or category is listed again', async (t) => {
  const { service, team_id: team } = await worldOf(await renewed())
  const before = aTemplate({ body: 1 })
  const { id } = await makeTemplate(service, team, before)
  const templates = [before]
  const { delivery } = await startCloud(t, { templates })
  await startWorker(t, service, { whatsapp: delivery })
  const slots = async () =>
    (await whatsappTemplatesOfTeam(service.database, team)).map((row) => `${row.category} ${row.slots}`)
  const value = {
    message_template_name: before.name,
    message_template_language: String(before.language).replace('_', '-'),
  }
  const time = Math.floor(Date.now() / 1_000)
  templates[0] = { ...aTemplate({ body: 2 }), name: before.name }
  await report(service, { field: 'message_template_components_update', value, time })
  await until('its new slots are known', async () => (await slots())[0] === 'UTILITY body:1,body:2')
  templates[0] = { ...templates[0], category: 'MARKETING' }
  await report(service, { field: 'template_category_update', value, time })
  await until('its new category is known', async () => (await slots())[0] === 'MARKETING body:1,body:2')
  t.match(await templateOf(service, id), { status: 'approved' })
})

t.test('a status of an unknown message ends at once', async (t) => {
  const service = await renewed()
  await startWorker(t, service)
  const status = { id: 'wamid.foreign', status: 'read', recipient_id: '15555550101', timestamp: '1790000000' }
  t.equal((await postUpdates(service, statusWebhook('200', [status]))).status, 200)
  await until('it is read', () => settled(service))
  t.match(await storedReports(service), [{ state: 'done' }])
})
