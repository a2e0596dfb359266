/** Meta's updates about a template's category and quality, and syncs. Real hook, real queue, real worker. */
import { sql } from 'slonik'
import { readTemplate } from '../../../db/messages/whatsapp/save-template.ts'
import { applyListing, requestAllSyncs } from '../../../db/messages/whatsapp/sync-templates.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { startCloud } from '../../support/cloud.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { makeTeam, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { aTemplate, makeTemplate, postUpdates, setStatus, templateOf } from '../../support/whatsapp.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

t.test('owners see an announced category and the quality, and get an email about a change', async (t) => {
  const { service, team_id, cli } = await worldOf(await renewed())
  await makeTeam(service, { domain: 'notices.test' })
  const definition = aTemplate()
  const { id } = await makeTemplate(service, team_id, definition)
  const owner = await signedIn(service, { team: team_id, role: 'owner', email: 'owner@example.org' })
  await signedIn(service, { team: team_id, role: 'editor', email: 'editor@example.org' })
  const sink = await startSmtpSink(t)
  const { delivery } = await startCloud(t, { templates: [] })
  const notices = { from: 'Heliograph <login@notices.test>', operator: null, site: null }
  await startWorker(t, service, { smtp_url: sink.url, whatsapp: delivery, notices })
  const time = Math.floor(Date.now() / 1_000)
  const post = async (field: string, value: object) => {
    const about = { message_template_name: definition.name, message_template_language: 'en_US' }
    const changes = [{ field, value: { ...about, ...value } }]
    t.equal((await postUpdates(service, { entry: [{ id: '1', time, changes }] })).status, 200)
  }
  const show = () => cli.json(['whatsapp-template', 'show', team_id, id])
  const page = () => owner.get(`/teams/${team_id}/whatsapp-templates/${id}`)
  await post('template_category_update', { new_category: 'UTILITY', correct_category: 'MARKETING' })
  await post('message_template_quality_update', { new_quality_score: 'RED' })
  await until('both are stored', async () => {
    const { announced_category, quality } = await show()
    return announced_category === 'MARKETING' && quality === 'RED'
  })
  shows(t, await page(), /Meta will change the category to Marketing\. .* Quality RED/)
  t.match(await show(), { category: 'UTILITY' })
  t.equal(sink.messages().length, 0)
  await post('template_category_update', { previous_category: 'UTILITY', new_category: 'MARKETING' })
  await until('the owner has mail', () => sink.messages().length > 0)
  t.match(await show(), { category: 'MARKETING', announced_category: null })
  t.same(sink.recipients(), [['owner@example.org']])
  t.match(sink.messages()[0]?.raw.toString(), /category of the WhatsApp template/)
})

t.test('the list of a previous account changes nothing', async (t) => {
  const { service, database, team_id } = await worldOf(await renewed())
  const definition = aTemplate()
  const { id } = await makeTemplate(service, team_id, definition)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  await makeNumber(service, { name: 'acme', phone_number_id: '901', account_id: '900', token: 'a-token' })
  const listed = [readTemplate({ ...definition, status: 'DISABLED' })]
  const list = (account_id: string | null) =>
    database.transaction((tx) =>
      applyListing(tx, { team_id, sync_id: id }, listed, { asked_at: new Date(), account_id }),
    )
  for (const [number, left] of [
    [null, '900'],
    ['acme', null],
    ['acme', '800'],
  ] as const) {
    await giveNumber(service, team_id, number)
    t.strictSame(await list(left), { missing: [] })
    t.match(await templateOf(service, id), { status: 'approved' }, `${number}, ${left}`)
  }
  await list('900')
  t.match(await templateOf(service, id), { status: 'disabled' })
})

t.test('a sync that finds a paused template approved releases it', async (t) => {
  const { service, database, team_id } = await worldOf(await renewed())
  const definition = aTemplate()
  const { id } = await makeTemplate(service, team_id, definition)
  await setStatus(service, team_id, id, 'paused')
  const at = { asked_at: new Date(Date.now() + 1_000), account_id: null }
  await database.transaction((tx) =>
    applyListing(tx, { team_id, sync_id: id }, [readTemplate(definition)], at),
  )
  t.match(await templateOf(service, id), { status: 'approved' })
})

t.test('nightly syncs cover live teams with templates in known accounts', async (t) => {
  const { service, database, team_id } = await worldOf(await renewed())
  const [other, test, none] = [
    await makeTeam(service),
    await makeTeam(service, { test: true }),
    await makeTeam(service),
  ]
  for (const { id } of [{ id: team_id }, other, test]) await makeTemplate(service, id)
  const synced = async () => {
    await database.query(sql.unsafe`delete from pgboss.job`)
    await database.transaction((tx) => requestAllSyncs({ tx, queue: service.deps.queue }))
    const count = (name: string, team: string) =>
      database.oneFirst(sql.type(countRow)`
        select count(*) from pgboss.job where name = ${name} and data ->> 'team_id' = ${team}`)
    const counts: number[] = []
    for (const team of [team_id, other.id, test.id, none.id])
      for (const name of ['sync-whatsapp-templates', 'sync-whatsapp-number-templates'])
        counts.push(await count(name, team))
    return counts.join('')
  }
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: null })
  await makeNumber(service, { name: 'acme', phone_number_id: '901', account_id: '900', token: 'a-token' })
  await giveNumber(service, other.id, 'acme')
  t.equal(await synced(), '00010000')
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  t.equal(await synced(), '10010000')
})

t.test('a sync is rejected without WHATSAPP_BUSINESS_ACCOUNT_ID', async (t) => {
  const { service, team_id, cli } = await worldOf(await renewed())
  const { delivery } = await startCloud(t, {}, { account_id: null })
  await startWorker(t, service, { whatsapp: delivery })
  t.match(await cli.fault(['whatsapp-template', 'sync', team_id]), /WHATSAPP_BUSINESS_ACCOUNT_ID is not set/)
})
