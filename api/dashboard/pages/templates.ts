/** Email templates: the list, a new one, and what changed between versions. */

import { templatesWithDraft } from '../../../db/content/templates/drafts.sql.ts'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { templatesOfTeam, versionsByIds } from '../../../db/content/templates/templates.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { text, time } from '../components/cell.ts'
import { difference } from '../components/difference.ts'
import { act, compact, field, formOf, get, large, tableOf } from '../server/builders.ts'
import { redirect, show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { partFields, partOf, slotWords } from './template-parts.ts'

const list = get('viewer', '/teams/:team/templates', async ({ team, now }, { database }) => {
  const templates = await templatesOfTeam(database, team.id)
  const drafted = await templatesWithDraft(database, team.id)
  return show({
    title: 'Templates',
    lead: 'Publishing a change makes a new version: emails accepted before keep theirs.',
    sections: compact([
      tableOf(
        templates,
        ({ id, name, slots, updated_at }) => ({
          Name: text(name, {
            href: teamPath(team, 'templates', id),
            detail: drafted.includes(id) ? 'draft' : '',
          }),
          Variables: text(slotWords(slots)),
          ID: text(id, { code: true, copy: true }),
          Changed: time(updated_at, now),
        }),
        { empty: 'No templates yet. Create one, then send it by its ID.' },
      ),
      team.role !== 'viewer' &&
        formOf(
          teamPath(team, 'templates'),
          'Create template',
          [field('name', 'Name', { required: true }), ...partFields({ html: '', text: '' })],
          {
            title: 'New template',
            folded: true,
            note: 'It is published at once: sends can use it by its ID. Later changes are drafts until you publish them.',
          },
        ),
    ]),
  })
})

const create = act(large('editor'), '/teams/:team/templates', async (by, { team, form }) => {
  const wanted = {
    name: (form.get('name') ?? '').trim(),
    html: partOf(form, 'html'),
    text: partOf(form, 'text'),
  }
  const { id } = await saveTemplate(by, team.id, wanted)
  return redirect(teamPath(team, 'templates', id), `The template ${wanted.name} was created.`)
})

const versions = get(
  'viewer',
  '/teams/:team/templates/:id/versions/:older_id/:newer_id',
  async ({ team, params }, { database }) => {
    const ids = [params.older_id, params.newer_id]
    const rows = await versionsByIds(
      database,
      ids.map((id) => ({ team_id: team.id, id })),
    )
    const [older, newer] = ids.map((id) => rows.find((row) => row.id === id && row.template_id === params.id))
    if (!older || !newer) throw new RequestError('not_found', TEXTS.noVersions)
    return show({
      title: 'What changed',
      back: { href: teamPath(team, 'templates', params.id), label: 'The template' },
      sections: [
        { kind: 'difference', title: 'HTML', lines: difference(older.html, newer.html) },
        { kind: 'difference', title: 'Plain text', lines: difference(older.body_text, newer.body_text) },
      ],
    })
  },
)

export const templatesPages = [list, create, versions]
