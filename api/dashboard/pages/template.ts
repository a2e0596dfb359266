/** One template: its editor, a preview with sample values, a test send, and the versions that there were. */
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { type DraftRow, draftOf } from '../../../db/content/templates/drafts.sql.ts'
import { updateTemplate } from '../../../db/content/templates/save.ts'
import {
  type ListedVersion,
  type ShownTemplate,
  versionsByIds,
  versionsOfTemplate,
} from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { Refusal } from '../../../db/errors.ts'
import { previewOf } from '../../../db/messages/emails/content.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { UNSUBSCRIBE_SLOT } from '../../../db/text/slots.ts'
import { type Cell, text, time } from '../drawn/cell.ts'
import type { Field, Section } from '../drawn/section.ts'
import { inPerson } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { framed, frameHeaders } from '../served/guard.ts'
import { addressWith, idGiven } from '../served/list.ts'
import { raw, redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { sendOwn } from './own-mail.ts'
import { draftSections } from './template-draft.ts'
import { templateFigures } from './template-figures.ts'
import { headersSection } from './template-headers.ts'
import { slotWords, templateOf, templatePath } from './template-parts.ts'

const MOST_VERSIONS = 50
/** Fields for sample values at most. */
const MOST_FIELDS = 50

/** What is previewed and sent as a test: the draft, else the version in use. */
type Previewed = Pick<ShownTemplate, 'name' | 'html' | 'text' | 'slots' | 'list_unsubscribe'> & {
  isDraft: boolean
}

/** The published version where it is asked for by `of`. @throws Refusal not_found. */
async function previewedOf(
  request: TeamRequest,
  { database }: PageDeps,
  given: URLSearchParams,
): Promise<{ template: ShownTemplate; draft: DraftRow | null; previewed: Previewed }> {
  const template = await templateOf(request, { database })
  const draft = await draftOf(database, request.team.id, template.id)
  const isDraft = draft !== null && given.get('of') !== 'published'
  const { html, text, slots } = isDraft ? draft : template
  return { template, draft, previewed: { ...template, html, text, slots, isDraft } }
}

/** A slot's name, so that its place can be seen; of a link that goes into a header, an address that it takes. */
const sampleOf = (slot: string): string =>
  slot === UNSUBSCRIBE_SLOT ? 'https://example.com/unsubscribe' : `[${slot}]`

/** The value of each slot: what was given, else a sample. */
const valuesOf = ({ slots }: Previewed, given: URLSearchParams): Record<string, string> =>
  Object.fromEntries(slots.map((slot) => [slot, given.get(`v.${slot}`) ?? sampleOf(slot)]))

/** Fields for the first slots; the others keep their names. */
const valueFields = (values: Record<string, string>): Field[] =>
  Object.entries(values)
    .slice(0, MOST_FIELDS)
    .map(([slot, value]) => ({ name: `v.${slot}`, label: slot, type: 'text', value }))

/** What the template makes of the values. @throws Refusal bad_request, as a send of them is refused. */
function filledOf(previewed: Previewed, values: Record<string, string>) {
  const filled = previewOf(compileVersion({ ...previewed, body_text: previewed.text }), values)
  if (!('too_large' in filled)) return filled
  throw new Refusal(
    'bad_request',
    `with these values the ${filled.too_large} is larger than 1 MiB: it cannot be sent`,
  )
}

/** The two parts as they would be sent, or why they would not. */
function parts(previewed: Previewed, values: Record<string, string>, frame: Section): Section[] {
  try {
    const { text: plain } = filledOf(previewed, values)
    return [frame, ...(plain === '' ? [] : [{ kind: 'code' as const, title: 'Plain text', code: plain }])]
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return [{ kind: 'alerts', calm: '', alerts: [{ tone: 'bad', title: `No preview: ${error.message}` }] }]
  }
}

/** Which of the two is previewed, as a field keeps it. */
const choice = ({ isDraft }: Previewed): Field[] =>
  isDraft ? [] : [{ name: 'of', label: '', type: 'hidden', value: 'published' }]

function preview(previewed: Previewed, draft: DraftRow | null, request: TeamRequest): Section[] {
  const values = valuesOf(previewed, request.query)
  const fields = [...valueFields(values), ...(draft ? choice(previewed) : [])]
  const search = new URLSearchParams()
  for (const { name, value = '' } of fields) search.set(name, value)
  const samples: Section = {
    kind: 'filter',
    title: 'Preview',
    action: templatePath(request),
    method: 'get',
    fields,
    submit: 'Show with these values',
    reset: null,
  }
  const links = [
    { label: 'Draft', href: addressWith(request, { of: undefined }), current: previewed.isDraft },
    { label: 'Published', href: addressWith(request, { of: 'published' }), current: !previewed.isDraft },
  ]
  const frame: Section = {
    kind: 'frame',
    title: 'HTML',
    src: `${templatePath(request, 'preview')}?${search}`,
    ...(draft ? { links } : {}),
  }
  return [...(previewed.slots.length > 0 ? [samples] : []), ...parts(previewed, values, frame)]
}

async function testForm(
  previewed: Previewed,
  request: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const domains = await domainsOfTeam(database, request.team.id)
  const verified = domains.find(({ status }) => status === 'verified')
  const hidden = valueFields(valuesOf(previewed, request.query)).map((field) => ({
    ...field,
    type: 'hidden' as const,
  }))
  const what = previewed.isDraft ? 'The draft' : 'The published version'
  return {
    kind: 'form',
    title: 'Test send',
    note: `${what} goes to ${request.person.email} with the values above, and counts as any email.`,
    action: templatePath(request, 'test'),
    method: 'post',
    submit: 'Send it to me',
    fields: [
      {
        name: 'from',
        label: 'From',
        type: 'text',
        required: true,
        value: verified ? `hello@${verified.name}` : '',
        hint: 'An address of a verified domain of yours.',
      },
      ...hidden,
      ...choice(previewed),
    ],
  }
}

const restoring = (request: TeamRequest, version: string): Cell => ({
  text: '',
  button: {
    action: templatePath(request, 'restore'),
    label: 'Restore',
    tone: 'quiet',
    confirm: 'Restore this version? It becomes a new version, and sends use it at once.',
    sends: { version },
  },
})

function history(versions: readonly ListedVersion[], template: ShownTemplate, request: TeamRequest): Section {
  const edits = request.team.role !== 'viewer'
  return {
    kind: 'table',
    title: 'Versions',
    columns: ['Version', 'Published', 'Difference', ...(edits ? ['Restore'] : [])].map((label) => ({
      label,
      wrap: label === 'Version',
    })),
    rows: versions.map(({ id, number, created_at, created_by }, index) => {
      const older = versions[index + 1]
      const standing = [
        ...(id === template.version_id ? ['in use'] : []),
        ...(created_by === null ? [] : [`by ${created_by}`]),
      ]
      return {
        cells: [
          text(`v${number}`, { detail: standing.join(', ') }),
          time(created_at, request.now),
          older
            ? text('What changed', { href: templatePath(request, 'versions', older.id, id) })
            : text('The first one'),
          ...(edits ? [id === template.version_id ? text('') : restoring(request, id)] : []),
        ],
      }
    }),
    empty: '',
  }
}

const page: TeamPage = {
  method: 'GET',
  path: '/teams/:team/templates/:id',
  access: 'viewer',
  async handle(request, deps) {
    const { team } = request
    const { template, draft, previewed } = await previewedOf(request, deps, request.query)
    const versions = await versionsOfTemplate(deps.database, team.id, template.id, MOST_VERSIONS)
    const edits = team.role !== 'viewer'
    const emails = `${teamPath(team, 'emails')}?template=${template.id}`
    return show({
      title: template.name,
      state: draft ? text('unpublished draft', { tone: 'warn' }) : text('published', { tone: 'good' }),
      back: { href: teamPath(team, 'templates'), label: 'Templates' },
      even: true,
      sections: [
        ...draftSections(template, draft, request),
        await templateFigures(request, deps, template.id),
        {
          kind: 'facts',
          facts: [
            { label: 'ID', cell: text(template.id, { code: true, copy: true }) },
            { label: 'Variables', cell: text(slotWords(template.slots)) },
            { label: 'Used by', cell: text('Emails made from it', { href: emails }) },
          ],
        },
        headersSection(template, request),
        history(versions, template, request),
      ],
      aside: [
        ...preview(previewed, draft, request),
        ...(edits ? [await testForm(previewed, request, deps)] : []),
      ],
    })
  },
}

const frame: TeamPage = {
  method: 'GET',
  path: '/teams/:team/templates/:id/preview',
  access: 'viewer',
  async handle(request, deps) {
    const { previewed } = await previewedOf(request, deps, request.query)
    const { html } = filledOf(previewed, valuesOf(previewed, request.query))
    return raw(frameHeaders(false), framed(html))
  },
}

const restore: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/restore',
  access: 'editor',
  async handle(request, deps) {
    const { team, params, form } = request
    const id = params.id ?? ''
    const version = idGiven(form, 'version')
    const refs = version === undefined ? [] : [{ team_id: team.id, id: version }]
    const [row] = await versionsByIds(deps.database, refs)
    if (!row || row.template_id !== id) throw new Refusal('not_found', 'there is no such version')
    const parts = { html: row.html, text: row.body_text, list_unsubscribe: row.list_unsubscribe }
    await inPerson(request, deps, (by) => updateTemplate(by, team.id, id, parts))
    return redirect(templatePath(request), 'The version is restored: sends use it from now on.')
  },
}

const test: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/test',
  access: 'editor',
  async handle(request, deps) {
    const { team, form, person } = request
    const { template, previewed } = await previewedOf(request, deps, form)
    const from = parseMailbox(form.get('from') ?? '')
    if (!from) throw new Refusal('bad_request', 'from must be an email address')
    const variables = valuesOf(previewed, form)
    // A draft is no version that an email could keep: the test holds what it makes of the values.
    const content = previewed.isDraft
      ? { ...filledOf(previewed, variables), template_id: null, variables: {} }
      : { html: null, text: null, template_id: template.id, variables }
    const item = {
      path: '',
      from,
      to: [person.email],
      subject: `Test: ${template.name}`,
      ...content,
      headers: null,
      reply_to: '',
      tags: ['test'],
      idempotency_key: null,
    }
    await sendOwn(deps, { team_id: team.id, domain: null }, item)
    return redirect(templatePath(request), `A test is on its way to ${person.email}.`)
  },
}

export const templatePages = [page, frame, restore, test]
