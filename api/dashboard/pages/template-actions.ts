/** Renames, duplicates and deletes templates. */

import type { DraftRow } from '../../../db/content/templates/drafts.sql.ts'
import { removeTemplate } from '../../../db/content/templates/remove.ts'
import { renameTemplate, saveTemplate } from '../../../db/content/templates/save.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { keptOr } from '../components/lines.ts'
import type { Actions, Section } from '../components/section.ts'
import { action, buildForm, button, compact, field } from '../server/builders.ts'
import { redirect, type TeamRequest, teamPath } from '../server/page.ts'
import { changesLink, discardForm } from './template-draft.ts'
import { headersForm } from './template-headers.ts'
import { loadTemplate, templatePath } from './template-parts.ts'

const nameField = (value: string) => field('name', 'Name', { required: true, value })

export const wholeForms = ({ name }: ShownTemplate, request: TeamRequest): Section[] => [
  buildForm(templatePath(request, 'rename'), 'Save name', {
    title: 'Rename template',
    folded: 'menu',
    fields: [nameField(name)],
  }),
  buildForm(templatePath(request, 'duplicate'), 'Create copy', {
    title: 'Duplicate template',
    folded: 'menu',
    note: 'A new template with the published text of this one.',
    fields: [nameField(`Copy of ${name}`)],
  }),
]

/** Builds the actions of the menu. The editor has the buttons that save and publish. */
export const wholeActions = (
  template: ShownTemplate,
  draft: DraftRow | null,
  request: TeamRequest,
): Actions => ({
  links: draft ? [changesLink(request)] : [],
  forms: compact([
    headersForm(template, request),
    draft && discardForm(draft, request),
    button(templatePath(request, 'delete'), 'Delete template', { tone: 'danger' }),
  ]),
})

const rename = action('editor', '/teams/:team/templates/:id/rename', async (by, request) => {
  const before = await loadTemplate(request, by.tx)
  const name = keptOr(request.form.get('name') ?? '', before.name)
  await renameTemplate(by, request.team.id, request.params.id, name)
  return redirect(templatePath(request), `The template was renamed to ${name}.`)
})

const duplicate = action('editor', '/teams/:team/templates/:id/duplicate', async (by, request) => {
  const { html, text, list_unsubscribe } = await loadTemplate(request, by.tx)
  const copy = { name: (request.form.get('name') ?? '').trim(), html, text, list_unsubscribe }
  const { id, name } = await saveTemplate(by, request.team.id, copy)
  return redirect(teamPath(request.team, 'templates', id), `The template ${name} was created.`)
})

const remove = action('editor', '/teams/:team/templates/:id/delete', async (by, { team, params }) => {
  const { name } = await removeTemplate(by, team.id, params.id)
  return redirect(teamPath(team, 'templates'), `The template ${name} was deleted.`)
}).confirm(async (request, { database }) => ({
  question: `Delete the template ${(await loadTemplate(request, database)).name}?`,
  answer: 'Delete template',
  keep: 'Keep template',
  warning:
    'Emails with its ID are rejected, and broadcasts that use it can’t start. Emails that were already accepted are kept and still sent.',
  tone: 'danger',
}))

export const templateActs = [rename, duplicate, remove]
