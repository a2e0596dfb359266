/** Renames, duplicates and deletes templates, and turns the List-Unsubscribe headers of their emails on or off. */

import type { DraftRow } from '../../../db/content/templates/drafts.sql.ts'
import { removeTemplate } from '../../../db/content/templates/remove.ts'
import { renameTemplate, saveTemplate, updateTemplate } from '../../../db/content/templates/save.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { type Cell, text } from '../components/cell.ts'
import { keptOr } from '../components/lines.ts'
import type { Actions, Section } from '../components/section.ts'
import { already } from '../server/already.ts'
import { action, buildForm, button, compact, field } from '../server/builders.ts'
import { redirect, type TeamRequest, teamPath } from '../server/page.ts'
import { discardForm, editorActions } from './template-draft.ts'
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

const ON = 'Mail apps show an unsubscribe button, which uses the link in {{unsubscribe_url}}.'
const OFF = 'Mail apps show no unsubscribe button. Large mailbox providers require one for newsletters.'

const WARNING =
  'The variable unsubscribe_url becomes required. If PUBLIC_URL is set, it is filled in for emails whose only recipient is a contact. Other emails are rejected if they don’t set it.'

/** Builds the cell with the List-Unsubscribe setting, and for editors the button that changes it. */
export function headersCell({ list_unsubscribe: has }: ShownTemplate, request: TeamRequest): Cell {
  const cell = text(has ? 'on' : 'off', { detail: has ? ON : OFF })
  if (request.team.role === 'viewer') return cell
  const action = templatePath(request, 'list-unsubscribe')
  const sends = { wanted: has ? 'no' : 'yes' }
  return { ...cell, button: { action, label: `Turn ${has ? 'off' : 'on'}`, tone: 'quiet', sends } }
}

/** Builds the actions next to the title. Those of a draft send the editor. */
export const wholeActions = (draft: DraftRow | null, request: TeamRequest): Actions => ({
  forms: compact([
    draft && editorActions(request),
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

const setHeaders = action('editor', '/teams/:team/templates/:id/list-unsubscribe', async (by, request) => {
  const { team, params, form } = request
  const list_unsubscribe = form.get('wanted') === 'yes'
  await updateTemplate(by, team.id, params.id, { list_unsubscribe })
  const words = list_unsubscribe ? 'carry List-Unsubscribe headers' : 'carry no List-Unsubscribe headers'
  return redirect(templatePath(request), `From now on emails of this template ${words}.`)
}).confirm(async (request, { database }) => {
  const { name, list_unsubscribe } = await loadTemplate(request, database)
  const isOn = request.form.get('wanted') === 'yes'
  const way = isOn ? 'on' : 'off'
  if (list_unsubscribe === isOn) throw already(`The List-Unsubscribe setting of ${name}`, way)
  return {
    question: `Turn the List-Unsubscribe headers of ${name} ${way}? This creates a new version. Emails use it immediately.`,
    answer: `Turn the headers ${way}`,
    warning: way === 'on' ? WARNING : undefined,
  }
})

export const templateActs = [rename, duplicate, remove, setHeaders]
