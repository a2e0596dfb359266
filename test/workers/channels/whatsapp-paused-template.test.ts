/** Messages whose template Meta pauses or disables. With a real worker and a simulated Cloud API. */
import { sql } from 'slonik'
import {
  applyReportedTemplates,
  applyTemplateFacts,
} from '../../../db/messages/whatsapp/apply-template-events.ts'
import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { adminCli } from '../../support/admin.ts'
import { startReceiver } from '../../support/receiver.ts'
import t from '../../support/tap.ts'
import { aTemplate, setDue, templateOf } from '../../support/whatsapp.ts'
import { answering, startDeliveries } from '../../support/whatsapp-delivery.ts'
import { until } from '../../support/worker.ts'

const { service, begin } = await startDeliveries(t)
const { database } = service
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })

t.test('a message waits for its paused template without using attempts', async (t) => {
  let answers = true
  const definition = aTemplate()
  const { team, template, one, cloud, work, row, kinds } = await begin(t, {
    definition,
    onMessage: () => (answers ? answering(132015) : undefined),
  })
  const id = await one()
  await work()
  await until(
    'the template is paused',
    async () => (await templateOf(service, template.id)).status === 'paused',
  )
  const shown = await showMessage({ tx: database, now: service.deps.clock() }, team.id, id)
  t.match(shown, { status: 'queued', waiting: { state: 'deferred', attempts: 0, last_response: /132015/ } })
  t.strictSame(await kinds(id), ['held'])
  await setDue(service, [id])
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  t.equal(cloud.messages().length, 1, 'it is not asked again')
  answers = false
  const { name, language } = definition as { name: string; language: string }
  const occurred_at = new Date(Date.now() + 5_000)
  await database.transaction((tx) =>
    applyReportedTemplates(
      tx,
      [{ name, language, account_id: null, number: null, status: 'approved', occurred_at }],
      new Date(),
    ),
  )
  await setDue(service, [id])
  await until('it is sent', async () => (await row(id)).provider_message_id !== null)
})

t.test('a message of a disabled template fails unattempted', async (t) => {
  for (const status of ['disabled', 'rejected']) {
    const { template, one, cloud, work, row } = await begin(t)
    const id = await one()
    await database.query(sql.unsafe`
      update whatsapp_templates set status = ${status} where id = ${template.id}`)
    const worker = await work()
    await until('it has failed', async () => (await row(id)).status === 'failed')
    t.equal(cloud.messages().length, 0, status)
    await worker.stop()
  }
})

t.test('applies a changed category, and stores an announced one', async (t) => {
  const definition = aTemplate()
  const { team, template, work } = await begin(t, { definition })
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', '*'])
  const { name, language } = definition as { name: string; language: string }
  const apply = (facts: object, seconds: number) =>
    database.transaction((tx) =>
      applyTemplateFacts(
        tx,
        [
          {
            ...{ name, language, account_id: null, number: null },
            occurred_at: new Date(1_790_000_000_000 + seconds * 1_000),
            ...facts,
          },
        ],
        new Date(),
      ),
    )
  const found = async () => (await whatsappTemplatesOfTeam(database, team.id))[0]
  await apply({ announced_category: 'MARKETING' }, 1)
  t.match(await found(), { category: 'UTILITY', announced_category: 'MARKETING' })
  const [changed] = await apply({ category: 'MARKETING' }, 2)
  t.match(changed, { kind: 'applied', notices: [{ team_id: team.id, category_before: 'UTILITY' }] })
  t.match(await found(), { category: 'MARKETING', announced_category: null })
  await apply({ category: 'UTILITY' }, 1)
  t.match(await found(), { category: 'MARKETING' }, 'what is older changes nothing')
  await apply({ quality: 'RED' }, 3)
  t.match(await found(), { quality: 'RED' })
  await work()
  await until('the change is sent', () => receiver.received.length > 0)
  t.strictSame(
    receiver.received.map(({ body: { type, data } }) => ({ type, data })),
    [
      {
        type: 'whatsapp_template.category_changed',
        data: { template_id: template.id, name, language, from: 'UTILITY', to: 'MARKETING' },
      },
    ],
  )
})
