/** One template: its editor beside its preview, a test send, and the versions that there were. */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { updateTemplate } from '../../../db/content/templates/save.ts'
import {
  type ListedVersion,
  type ShownTemplate,
  versionsByIds,
  versionsOfTemplate,
} from '../../../db/content/templates/templates.sql.ts'
import { invalidField, RequestError } from '../../../db/errors.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { type Cell, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { act, buttonCell, compact, factsOf, field, formOf, get, post, tableOf } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { idParam } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { sendOwn } from './own-mail.ts'
import { templateActs, wholeActions, wholeForms } from './template-actions.ts'
import { draftSections, publishForm, templateDraftPages } from './template-draft.ts'
import { headersSection, templateHeadersPages } from './template-headers.ts'
import { slotWords, templatePath } from './template-parts.ts'
import {
  choice,
  filledOf,
  type Previewed,
  preview,
  previewedOf,
  templatePreviewPages,
  valueFields,
  valuesOf,
} from './template-preview.ts'
import { templateFigures } from './template-stats.ts'

const MAX_VERSIONS = 50

async function testForm(
  previewed: Previewed,
  request: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const domains = await domainsOfTeam(database, request.team.id)
  const verified = domains.find(({ status }) => status === 'verified')
  const values = valueFields(valuesOf(previewed, request.query)).map((field) => ({
    ...field,
    label: `Value of ${field.label}`,
  }))
  const what = previewed.isDraft ? 'The draft' : 'The published version'
  return formOf(
    templatePath(request, 'test'),
    'Send it to me',
    [
      field('from', 'From', {
        required: true,
        value: verified ? `hello@${verified.name}` : '',
        hint: 'An address of a verified domain of yours.',
      }),
      ...values,
      ...choice(previewed),
    ],
    {
      title: 'Send a test',
      folded: true,
      note: `${what} goes to ${request.person.email} with these values, and counts as any email.`,
    },
  )
}

const restoring = (request: TeamRequest, version: string): Cell =>
  buttonCell(templatePath(request, 'restore'), 'Restore version', {
    tone: 'quiet',
    confirm: 'Restore this version? It becomes a new version, and sends use it at once.',
    sends: { version },
  })

/** @param versions one more than are shown, where there are as many: what changed since then is shown, too. */
function history(versions: readonly ListedVersion[], template: ShownTemplate, request: TeamRequest): Section {
  const edits = request.team.role !== 'viewer'
  const shown = ({ id, number, created_at, created_by }: ListedVersion, index: number) => {
    const older = versions[index + 1]
    const notes = compact([id === template.version_id && 'in use', `by ${created_by}`])
    return {
      Version: text(`v${number}`, { detail: notes.join(', ') }),
      Published: time(created_at, request.now),
      Difference: older
        ? text('What changed', { href: templatePath(request, 'versions', older.id, id) })
        : text('The first one'),
      Restore: edits && (id === template.version_id ? text('') : restoring(request, id)),
    }
  }
  return tableOf(versions.slice(0, MAX_VERSIONS), shown, {
    ...{ title: 'Versions', wrap: ['Version'], empty: '' },
    note: versions.length > MAX_VERSIONS ? `The newest ${MAX_VERSIONS}.` : undefined,
  })
}

const page = get('viewer', '/teams/:team/templates/:id', async (request, deps) => {
  const { team } = request
  const { template, draft, previewed } = await previewedOf(request, deps, request.query)
  const versions = await versionsOfTemplate(deps.database, team.id, template.id, MAX_VERSIONS + 1)
  const edits = team.role !== 'viewer'
  const emails = `${teamPath(team, 'emails')}?template=${template.id}`
  return show({
    title: template.name,
    state: draft ? text('unpublished draft', { tone: 'warn' }) : text('published', { tone: 'good' }),
    back: { href: teamPath(team, 'templates'), label: 'Templates' },
    actions: edits
      ? wholeActions(template, draft && publishForm(template, draft, request), request)
      : undefined,
    even: true,
    sections: compact([
      edits && (await testForm(previewed, request, deps)),
      edits && wholeForms(template, request),
      ...draftSections(template, draft, request),
    ]),
    aside: preview(previewed, draft, request),
    below: [
      await templateFigures(request, deps, template.id),
      factsOf({
        ID: text(template.id, { code: true, copy: true }),
        Variables: text(slotWords(template.slots)),
        'Used by': text('Emails that use it', { href: emails }),
      }),
      headersSection(template, request),
      history(versions, template, request),
    ],
  })
})

const restore = act('editor', '/teams/:team/templates/:id/restore', async (by, request) => {
  const { team, params, form } = request
  const version = idParam(form, 'version')
  const refs = version === undefined ? [] : [{ team_id: team.id, id: version }]
  const [row] = await versionsByIds(by.tx, refs)
  if (!row || row.template_id !== params.id) throw new RequestError('not_found', TEXTS.noVersion)
  const parts = { html: row.html, text: row.body_text, list_unsubscribe: row.list_unsubscribe }
  await updateTemplate(by, team.id, params.id, parts)
  return redirect(templatePath(request), 'The version is restored: sends use it from now on.')
})

const test = post('editor', '/teams/:team/templates/:id/test', async (request, deps) => {
  const { team, form, person } = request
  const { template, previewed } = await previewedOf(request, deps, form)
  const from = parseMailbox(form.get('from') ?? '')
  if (!from) throw invalidField('from', 'must be an email address')
  const variables = valuesOf(previewed, form)
  // A draft is no version that an email could keep: the test holds what it makes of the values.
  const content = previewed.isDraft
    ? { ...filledOf(previewed, variables), variables: {} }
    : { template_id: template.id, variables }
  const mail = { from, to: [person.email], subject: `Test: ${template.name}`, ...content, tags: ['test'] }
  await sendOwn(deps, { team_id: team.id, domain: null }, mail)
  return redirect(templatePath(request), `A test is on its way to ${person.email}.`)
})

export const templatePages = [
  page,
  ...templatePreviewPages,
  ...templateActs,
  ...templateDraftPages,
  ...templateHeadersPages,
  restore,
  test,
]
