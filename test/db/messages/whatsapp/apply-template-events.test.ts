/**
 * The provider's updates about templates name no team. They apply to templates with that name in that
 * account.
 */
import { sql } from 'slonik'
import {
  applyReportedTemplates,
  applyTemplateChanges,
  applyTemplateFacts,
} from '../../../../db/messages/whatsapp/apply-template-events.ts'
import {
  type TemplateUpdate,
  whatsappTemplatesOfTeam,
} from '../../../../db/messages/whatsapp/templates.sql.ts'
import { makeTeam, world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { aTemplate, makeTemplate, templateOf } from '../../../support/whatsapp.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../../support/whatsapp-numbers.ts'

const { service, database, team } = await world(t)
const other = await makeTeam(service)
const apprentice = await makeTeam(service, { test: true })
const definition = aTemplate({}, { name: 'shared', language: 'en_US' })
const ids: string[] = []
for (const { id } of [team, other, apprentice]) ids.push((await makeTemplate(service, id, definition)).id)

const APPLIED = { kind: 'applied' }
const NOBODYS = { kind: 'ignored', reason: 'no team has this template' }

t.test("the latest event sets each live team's state", async (t) => {
  const states = async () =>
    (await Promise.all(ids.map(async (id) => (await templateOf(service, id)).status))).join()
  const begun = Math.floor(Date.now() / 1_000)
  const news = (
    status: TemplateUpdate['status'],
    seconds: number,
    changes: Partial<TemplateUpdate> = {},
  ): TemplateUpdate => ({
    ...{ name: 'shared', language: 'en-US', account_id: null, number: null, status },
    occurred_at: new Date((begun + seconds) * 1_000),
    ...changes,
  })
  const apply = (...all: TemplateUpdate[]) =>
    database.transaction((tx) => applyReportedTemplates(tx, all, new Date()))
  const results = await apply(
    ...[news('paused', 10), news('approved', 5)],
    ...[news('disabled', 10, { name: 'nobody’s' }), news('disabled', 10, { language: 'en' })],
  )
  t.strictSame(results, [APPLIED, APPLIED, NOBODYS, NOBODYS])
  t.equal(await states(), 'paused,paused,approved', 'the provider knows nothing of a test team')
  t.strictSame(await apply(news('approved', 7)), [APPLIED])
  t.equal(await states(), 'paused,paused,approved', 'older news change nothing')
  await apply(news('rejected', 15), news('approved', 20))
  t.equal(await states(), 'approved,approved,approved')
  await apply(news('paused', 20), news('disabled', 20), news('approved', 20))
  await apply(news('approved', 20))
  t.equal(await states(), 'disabled,disabled,approved', 'of one second the most restrictive counts')
})

t.test('a changed template is synced in its live teams', async (t) => {
  const change = (name: string, language: string) => ({
    ...{ name, language, account_id: null, number: null },
    occurred_at: new Date(),
  })
  await makeTemplate(service, team.id, aTemplate({}, { name: 'own', language: 'pt-BR' }))
  const [shared, single, ...others] = await database.transaction((tx) =>
    applyTemplateChanges(tx, [
      ...[change('shared', 'en-US'), change('own', 'pt_BR')],
      ...[change('nobody’s', 'en_US'), change('shared', 'en')],
    ]),
  )
  t.strictSame(shared?.kind === 'applied' && [...(shared.sync ?? [])].sort(), [team.id, other.id].sort())
  t.strictSame(single, { kind: 'applied', sync: [team.id] })
  t.strictSame(others, [NOBODYS, NOBODYS])
})

t.test("an account's updates don't change templates of another account", async (t) => {
  const teams = [team, other, await makeTeam(service), await makeTeam(service)]
  const definition = aTemplate({}, { name: 'everywhere', language: 'en_US' })
  const own: string[] = []
  for (const { id } of teams) own.push((await makeTemplate(service, id, definition)).id)
  const number = { token: 'a-token', account_id: '900' }
  await makeNumber(service, { ...number, name: 'acme', phone_number_id: '901' })
  await makeNumber(service, { ...number, name: 'acme-2', phone_number_id: '902' })
  await makeNumber(service, { ...number, name: 'globex', phone_number_id: '801', account_id: '800' })
  for (const [at, name] of ['acme', 'acme-2', 'globex'].entries())
    await giveNumber(service, teams[at + 1]?.id ?? '', name)
  /**
   * Returns which of the four templates an account's updates reach, for each of the three kinds of updates.
   */
  const reached = async (account_id: string, hook: string | null = null) => {
    await database.query(sql.unsafe`
      update whatsapp_templates set status = 'approved', status_at = now() - interval '1 hour', quality = null`)
    const about = { name: 'everywhere', language: 'en_US', account_id, number: hook, occurred_at: new Date() }
    const changes = await database.transaction(async (tx) => {
      await applyReportedTemplates(tx, [{ ...about, status: 'paused' }], new Date())
      await applyTemplateFacts(tx, [{ ...about, quality: 'RED' }], new Date())
      return applyTemplateChanges(tx, [about])
    })
    const synced = changes.flatMap((result) => (result.kind === 'applied' ? (result.sync ?? []) : []))
    const rows = (await Promise.all(teams.map(({ id }) => whatsappTemplatesOfTeam(database, id)))).flat()
    return own.map((id, at) => {
      const row = rows.find((each) => each.id === id)
      const found = [row?.status === 'paused', row?.quality === 'RED', synced.includes(teams[at]?.id ?? '')]
      return found.every(Boolean) ? 'x' : found.some(Boolean) ? '?' : '-'
    })
  }
  t.equal((await reached('900')).join(''), '-xx-')
  t.equal((await reached('800')).join(''), '---x')
  t.equal((await reached('900', '902')).join(''), '--x-', 'by the hook of a number only its teams')
  t.equal((await reached('800', '902')).join(''), '----')
  t.equal((await reached('700')).join(''), 'x---', 'the default account isn’t known')
  await makeDefaultNumber(service, { phone_number_id: '701', account_id: '700' })
  t.equal((await reached('700')).join(''), 'x---')
  t.equal((await reached('600')).join(''), '----')
})
