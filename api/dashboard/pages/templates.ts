/** Lists email templates and creates new ones. */

import { templatesWithDraft } from '../../../db/content/templates/drafts.sql.ts'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { usageOfTemplates } from '../../../db/messages/emails/of-template.sql.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { number, text, time } from '../components/cell.ts'
import { action, buildForm, compact, field, get, large } from '../server/builders.ts'
import { redirect, show, teamPath } from '../server/page.ts'
import { sortableTable } from '../server/sort.ts'
import { describeDecoded, partFields, readPart, UNPUBLISHED } from './template-parts.ts'

const USAGE_DAYS = 30
/** Maximum number of emails per template that are counted. */
const MAX_COUNTED = 1_000

/** A longer list of templates has no pictures, because each picture is a page. */
const MAX_PICTURES = 40

async function usageCells(tx: Tx, teamId: string, ids: readonly string[], now: Date) {
  const since = new Date(now.getTime() - USAGE_DAYS * 86_400_000)
  const usage = await usageOfTemplates(tx, teamId, ids, { since, most: MAX_COUNTED })
  return new Map(
    usage.map(({ id, count, last_at }) => [
      id,
      {
        count: number(count, count < MAX_COUNTED ? {} : { text: `${number(MAX_COUNTED).text}+` }),
        last: time(last_at, now),
      },
    ]),
  )
}

const list = get('viewer', '/teams/:team/templates', async (request, { database }) => {
  const { team, now } = request
  const templates = await templatesOfTeam(database, team.id)
  const drafted = await templatesWithDraft(database, team.id)
  const usage = await usageCells(
    database,
    team.id,
    templates.map(({ id }) => id),
    now,
  )
  return show({
    title: 'Templates',
    lead: 'Publishing a change creates a new version. Emails that were already accepted keep theirs.',
    sections: compact([
      sortableTable(
        request,
        templates,
        ({ id, name, updated_at }) => ({
          Name: text(name, {
            href: teamPath(team, 'templates', id),
            detail: drafted.includes(id) ? UNPUBLISHED : '',
          }),
          Preview: templates.length <= MAX_PICTURES && {
            text: name,
            frame: `${teamPath(team, 'templates', id, 'preview')}?of=published`,
          },
          [`Emails, ${USAGE_DAYS} days`]: usage.get(id)?.count,
          Used: usage.get(id)?.last,
          Edited: time(updated_at, now),
        }),
        {
          sort: 'Name',
          former: { 'Last used': 'Used', Changed: 'Edited' },
          empty: 'No templates yet. Create one, then send it by its ID.',
        },
      ),
      team.role !== 'viewer' &&
        buildForm(teamPath(team, 'templates'), 'Create template', {
          title: 'Create a template',
          folded: true,
          note: 'It is published immediately, and you can send it by its ID. Later changes are drafts until you publish them.',
          fields: [field('name', 'Name', { required: true }), ...partFields({ html: '', text: '' })],
        }),
    ]),
  })
})

const create = action(large('editor'), '/teams/:team/templates', async (by, { team, form }) => {
  const wanted = {
    name: (form.get('name') ?? '').trim(),
    html: readPart(form, 'html'),
    text: readPart(form, 'text'),
  }
  const { id, decoded } = await saveTemplate(by, team.id, wanted)
  const done = `The template ${wanted.name} was created.`
  return redirect(teamPath(team, 'templates', id), `${done}${describeDecoded(decoded)}`)
})

export const templatesPages = [list, create]
