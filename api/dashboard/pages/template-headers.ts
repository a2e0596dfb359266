/** Turns the List-Unsubscribe headers of a template's emails on or off. */

import { updateTemplate } from '../../../db/content/templates/save.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { type Cell, text } from '../components/cell.ts'
import type { Form } from '../components/section.ts'
import { already } from '../server/already.ts'
import { action, button, hidden } from '../server/builders.ts'
import { redirect, type TeamRequest } from '../server/page.ts'
import { loadTemplate, templatePath } from './template-parts.ts'

const ON = 'Mail apps show an unsubscribe button, which uses the link in {{unsubscribe_url}}.'
const OFF = 'Mail apps show no unsubscribe button. Large mailbox providers require one for newsletters.'

const WARNING =
  'unsubscribe_url becomes a required variable. If PUBLIC_URL is set, emails to a single stored contact get it automatically. All other emails without it are rejected.'

export const headersCell = ({ list_unsubscribe: has }: ShownTemplate): Cell =>
  text(has ? 'on' : 'off', { detail: has ? ON : OFF })

export const headersForm = ({ list_unsubscribe: has }: ShownTemplate, request: TeamRequest): Form =>
  button(templatePath(request, 'list-unsubscribe'), `Turn List-Unsubscribe headers ${has ? 'off' : 'on'}`, {
    fields: [hidden('wanted', has ? 'no' : 'yes', true)],
    tone: 'quiet',
    menu: true,
  })

const change = action('editor', '/teams/:team/templates/:id/list-unsubscribe', async (by, request) => {
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

export const templateHeadersPages = [change]
