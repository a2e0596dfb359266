/** What the provider's news of templates, which name no team, make of every live team's template of that name. */
import {
  applyReportedTemplates,
  applyTemplateChanges,
} from '../../../../db/messages/whatsapp/apply-template-events.ts'
import type { TemplateNews } from '../../../../db/messages/whatsapp/templates.sql.ts'
import { makeTeam, world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { aTemplate, makeTemplate, templateOf } from '../../../support/whatsapp.ts'

const { service, database, team } = await world(t)
const other = await makeTeam(service)
const apprentice = await makeTeam(service, { test: true })
const definition = aTemplate({}, { name: 'shared', language: 'en_US' })
const ids: string[] = []
for (const { id } of [team, other, apprentice]) ids.push((await makeTemplate(service, id, definition)).id)

const APPLIED = { kind: 'applied' }
const NOBODYS = { kind: 'ignored', reason: 'no team has this template' }

t.test('news of a template move each live team’s of that name; the latest count, in any order', async (t) => {
  const states = async () =>
    (await Promise.all(ids.map(async (id) => (await templateOf(service, id)).status))).join()
  const begun = Math.floor(Date.now() / 1_000)
  const news = (
    status: TemplateNews['status'],
    seconds: number,
    changes: Partial<TemplateNews> = {},
  ): TemplateNews => ({
    ...{ name: 'shared', language: 'en-US', status },
    occurred_at: new Date((begun + seconds) * 1_000),
    ...changes,
  })
  const apply = (...all: TemplateNews[]) =>
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

t.test('a template that changed is to be listed again by each live team that has it', async (t) => {
  const change = (name: string, language: string) => ({ name, language, occurred_at: new Date() })
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
