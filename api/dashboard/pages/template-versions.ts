/** Lists, compares and restores versions of a template. */

import { updateTemplate } from '../../../db/content/templates/save.ts'
import {
  type ComparedVersion,
  type ListedVersion,
  type ShownTemplate,
  versionsByIds,
  versionsOfTemplate,
  versionsToCompare,
} from '../../../db/content/templates/templates.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { type Cell, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { already } from '../server/already.ts'
import {
  action,
  buildAlerts,
  buildTable,
  button,
  buttonCell,
  compact,
  get,
  hidden,
} from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { framed, frameHeaders } from '../server/guard.ts'
import { idParam } from '../server/list.ts'
import { raw, redirect, show, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { partChanges, slotAlerts } from './template-changes.ts'
import { loadTemplate, templatePath } from './template-parts.ts'
import { readValues, renderPreview } from './template-preview.ts'

const MAX_VERSIONS = 50

const restoreCell = (version: ListedVersion, request: TeamRequest): Cell =>
  buttonCell(templatePath(request, 'restore'), 'Restore version', {
    tone: 'quiet',
    sends: { version: version.id },
  })

/** Lists the newest versions. Reads one more than it shows, for the changes of the last one. */
export async function history(template: ShownTemplate, request: TeamRequest, { database }: PageDeps) {
  const { team, now } = request
  const versions = await versionsOfTemplate(database, team.id, template.id, MAX_VERSIONS + 1)
  const edits = team.role !== 'viewer'
  const shown = (version: ListedVersion, index: number) => {
    const { id, number, created_at, created_by } = version
    const older = versions[index + 1]
    const notes = compact([id === template.version_id && 'in use', `by ${created_by}`])
    return {
      Version: text(`v${number}`, { detail: notes.join(', ') }),
      Published: time(created_at, now),
      Difference: older
        ? text('What changed', { href: templatePath(request, 'versions', older.id, id) })
        : text('The first one'),
      Restore:
        edits &&
        versions.length > 1 &&
        (id === template.version_id ? text('') : restoreCell(version, request)),
    }
  }
  return buildTable(versions.slice(0, MAX_VERSIONS), shown, {
    ...{ title: 'Versions', wrap: ['Version'], empty: '' },
    note: versions.length > MAX_VERSIONS ? `The newest ${MAX_VERSIONS}.` : undefined,
  })
}

const rendered = (
  { id, number, created_at, created_by }: ComparedVersion,
  request: TeamRequest,
): Section => ({
  kind: 'frame',
  title: `v${number}`,
  note: `By ${created_by},`,
  noteAt: time(created_at, request.now),
  src: templatePath(request, 'versions', id, 'preview'),
})

const versionPreview = get(
  'viewer',
  '/teams/:team/templates/:id/versions/:version_id/preview',
  async (request, deps) => {
    const template = await loadTemplate(request, deps.database)
    const version = request.params.version_id.toLowerCase()
    const [row] = await versionsByIds(deps.database, [{ team_id: request.team.id, id: version }])
    if (row?.template_id !== template.id) throw new RequestError('not_found', TEXTS.noVersion)
    const previewed = { ...template, ...row, text: row.body_text, isDraft: false }
    const { html } = await renderPreview(previewed, readValues(previewed, request.query), deps)
    return raw(frameHeaders(false), framed(html))
  },
)

const compared = get(
  'viewer',
  '/teams/:team/templates/:id/versions/:older_id/:newer_id',
  async (request, { database }) => {
    const { team, params } = request
    const template = await loadTemplate(request, database)
    const ids = [params.older_id, params.newer_id].map((id) => id.toLowerCase())
    const rows = await versionsToCompare(database, team.id, template.id, ids)
    const [older, newer] = ids.map((id) => rows.find((row) => row.id === id))
    if (!older || !newer) throw new RequestError('not_found', TEXTS.noVersions)
    const restorable = team.role !== 'viewer' && older.id !== template.version_id
    return show({
      title: `What changed in ${template.name}: v${older.number} to v${newer.number}`,
      back: { href: templatePath(request), label: template.name },
      actions: restorable
        ? {
            forms: [
              button(templatePath(request, 'restore'), `Restore v${older.number}`, {
                fields: [hidden('version', older.id)],
                tone: 'quiet',
              }),
            ],
          }
        : undefined,
      above: [
        ...buildAlerts(slotAlerts(older.slots, newer.slots, `From v${newer.number} on`)),
        ...partChanges({ ...older, text: older.body_text }, { ...newer, text: newer.body_text }),
      ],
      even: 'Newer version',
      sections: [rendered(older, request)],
      aside: [rendered(newer, request)],
    })
  },
)

const restore = action('editor', '/teams/:team/templates/:id/restore', async (by, request) => {
  const { team, params, form } = request
  const version = idParam(form, 'version')
  const refs = version === undefined ? [] : [{ team_id: team.id, id: version }]
  const [row] = await versionsByIds(by.tx, refs)
  if (!row || row.template_id !== params.id) throw new RequestError('not_found', TEXTS.noVersion)
  const parts = { html: row.html, text: row.body_text, list_unsubscribe: row.list_unsubscribe }
  await updateTemplate(by, team.id, params.id, parts)
  return redirect(templatePath(request), 'The version is restored. Emails use it from now on.')
}).confirm(async (request, { database }) => {
  const { name, html, text, list_unsubscribe } = await loadTemplate(request, database)
  const version = idParam(request.form, 'version') ?? request.params.id
  const [row] = await versionsToCompare(database, request.team.id, request.params.id, [version])
  if (!row) throw new RequestError('not_found', TEXTS.noVersion)
  const [old] = await versionsByIds(database, [{ team_id: request.team.id, id: row.id }])
  if (row.html === html && row.body_text === text && old?.list_unsubscribe === list_unsubscribe)
    throw already(`v${row.number} of ${name}`, 'restored')
  return {
    question: `Restore v${row.number} of ${name}? This creates a new version. Emails use it immediately.`,
    answer: 'Restore version',
  }
})

export const templateVersionsPages = [compared, versionPreview, restore]
