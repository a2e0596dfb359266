/** One template: its preview with sample values, a test send, a new version, and the versions that there were. */
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { updateTemplate } from '../../../db/content/templates/save.ts'
import {
  type ListedVersion,
  type ShownTemplate,
  templateById,
  versionsByIds,
  versionsOfTemplate,
} from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { Refusal } from '../../../db/errors.ts'
import { previewOf } from '../../../db/messages/emails/content.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { type Cell, text, time } from '../drawn/cell.ts'
import type { Field, Section } from '../drawn/section.ts'
import { inPerson } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { framed, frameHeaders } from '../served/guard.ts'
import { idGiven } from '../served/list.ts'
import { raw, redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { sendOwn } from './own-mail.ts'
import { partFields, partOf, slotWords } from './templates.ts'

const MOST_VERSIONS = 50
/** Fields for sample values at most. */
const MOST_FIELDS = 50

const here = ({ team, params }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'templates', params.id ?? '', ...rest)

/** @throws Refusal not_found. */
async function templateOf({ team, params }: TeamRequest, { database }: PageDeps): Promise<ShownTemplate> {
  const template = await templateById(database, team.id, params.id ?? '')
  if (!template) throw new Refusal('not_found', 'there is no such template')
  return template
}

/** The value of each slot: what was given, else its name, so that its place can be seen. */
const valuesOf = ({ slots }: ShownTemplate, given: URLSearchParams): Record<string, string> =>
  Object.fromEntries(slots.map((slot) => [slot, given.get(`v.${slot}`) ?? `[${slot}]`]))

/** Fields for the first slots; the others keep their names. */
const valueFields = (values: Record<string, string>): Field[] =>
  Object.entries(values)
    .slice(0, MOST_FIELDS)
    .map(([slot, value]) => ({ name: `v.${slot}`, label: slot, type: 'text', value }))

/** What the template makes of the values. @throws Refusal bad_request, as a send of them is refused. */
function filledOf(template: ShownTemplate, values: Record<string, string>) {
  const filled = previewOf(compileVersion({ ...template, body_text: template.text }), values)
  if (!('too_large' in filled)) return filled
  throw new Refusal(
    'bad_request',
    `with these values the ${filled.too_large} is larger than 1 MiB: it cannot be sent`,
  )
}

/** The two parts as they would be sent, or why they would not. */
function parts(template: ShownTemplate, values: Record<string, string>, src: string): Section[] {
  try {
    const { text: plain } = filledOf(template, values)
    return [
      { kind: 'frame', title: 'HTML', src },
      ...(plain === '' ? [] : [{ kind: 'code' as const, title: 'Plain text', code: plain }]),
    ]
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return [{ kind: 'alerts', calm: '', alerts: [{ tone: 'bad', title: `No preview: ${error.message}` }] }]
  }
}

function preview(template: ShownTemplate, request: TeamRequest): Section[] {
  const values = valuesOf(template, request.query)
  const fields = valueFields(values)
  const search = new URLSearchParams()
  for (const { name, value = '' } of fields) search.set(name, value)
  const samples: Section = {
    kind: 'filter',
    title: 'Preview',
    action: here(request),
    method: 'get',
    fields,
    submit: 'Show with these values',
    reset: null,
  }
  return [
    ...(fields.length > 0 ? [samples] : []),
    ...parts(template, values, `${here(request, 'preview')}?${search}`),
  ]
}

async function testForm(
  template: ShownTemplate,
  request: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const domains = await domainsOfTeam(database, request.team.id)
  const verified = domains.find(({ status }) => status === 'verified')
  const hidden = valueFields(valuesOf(template, request.query)).map((field) => ({
    ...field,
    type: 'hidden' as const,
  }))
  return {
    kind: 'form',
    title: 'Test send',
    note: `Goes to ${request.person.email} with the values above, and counts as any email.`,
    action: here(request, 'test'),
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
    ],
  }
}

const editForm = (template: ShownTemplate, request: TeamRequest): Section => ({
  kind: 'form',
  title: 'Editor',
  action: here(request, 'versions'),
  method: 'post',
  submit: 'Save a new version',
  fields: [
    ...partFields(template),
    { name: 'base', label: '', type: 'hidden', value: template.version_id, own: true },
    {
      name: 'break',
      label: 'Variables',
      type: 'checks',
      options: [
        {
          value: 'yes',
          label: 'Save even with new variables: sends that lack them are refused from then on',
        },
      ],
    },
  ],
})

const restoring = (request: TeamRequest, version: string): Cell => ({
  text: '',
  button: {
    action: here(request, 'restore'),
    label: 'Restore',
    tone: 'quiet',
    confirm: 'Restore this version? It becomes a new version, and calls use it at once.',
    sends: { name: 'version', value: version },
  },
})

function history(versions: readonly ListedVersion[], template: ShownTemplate, request: TeamRequest): Section {
  const edits = request.team.role !== 'viewer'
  return {
    kind: 'table',
    title: 'Versions',
    columns: ['Created', 'ID', 'Difference', ...(edits ? ['Restore'] : [])].map((label) => ({
      label,
    })),
    rows: versions.map(({ id, created_at }, index) => {
      const older = versions[index + 1]
      return {
        cells: [
          time(created_at, request.now),
          text(id, { code: true, detail: id === template.version_id ? 'the current one' : '' }),
          older
            ? text('What changed', { href: here(request, 'versions', older.id, id) })
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
    const { team, params } = request
    const template = await templateOf(request, deps)
    const versions = await versionsOfTemplate(deps.database, team.id, params.id ?? '', MOST_VERSIONS)
    const edits = team.role !== 'viewer'
    const emails = `${teamPath(team, 'emails')}?template=${params.id}`
    return show({
      title: template.name,
      back: { href: teamPath(team, 'templates'), label: 'Templates' },
      even: true,
      sections: [
        ...(edits ? [editForm(template, request)] : []),
        {
          kind: 'facts',
          facts: [
            { label: 'ID', cell: text(params.id ?? '', { code: true, copy: true }) },
            { label: 'Variables', cell: text(slotWords(template.slots)) },
            { label: 'Used by', cell: text('Emails made from it', { href: emails }) },
          ],
        },
        history(versions, template, request),
      ],
      aside: [...preview(template, request), ...(edits ? [await testForm(template, request, deps)] : [])],
    })
  },
}

const frame: TeamPage = {
  method: 'GET',
  path: '/teams/:team/templates/:id/preview',
  access: 'viewer',
  async handle(request, deps) {
    const template = await templateOf(request, deps)
    const { html } = filledOf(template, valuesOf(template, request.query))
    return raw(frameHeaders(false), framed(html))
  },
}

const save: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/versions',
  access: 'editor',
  async handle(request, deps) {
    const { team, params, form } = request
    const id = params.id ?? ''
    const before = await templateOf(request, deps)
    const parts = {
      html: partOf(form, 'html'),
      text: partOf(form, 'text'),
      base: form.get('base') ?? undefined,
    }
    const saved = await inPerson(request, deps, async (by) => {
      const made = await updateTemplate(by, team.id, id, parts)
      const fresh = made.slots.filter((slot) => !before.slots.includes(slot))
      if (fresh.length === 0 || form.get('break') === 'yes') return made
      const words = `this version needs ${fresh.join(', ')}, which the one before did not`
      throw new Refusal(
        'bad_request',
        `${words}: calls without would be refused. Tick the box to save it all the same`,
      )
    })
    if (saved.version_id === before.version_id) {
      return redirect(here(request), 'Nothing differs from the current version: no new one was saved.')
    }
    return redirect(
      here(request),
      `The new version is in use: its variables are ${slotWords(saved.slots) || 'none'}.`,
    )
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
    return redirect(here(request), 'The version is restored: calls use it from now on.')
  },
}

const test: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/test',
  access: 'editor',
  async handle(request, deps) {
    const { team, params, form, person } = request
    const template = await templateOf(request, deps)
    const from = parseMailbox(form.get('from') ?? '')
    if (!from) throw new Refusal('bad_request', 'from must be an email address')
    const item = {
      path: '',
      from,
      to: [person.email],
      subject: `Test: ${template.name}`,
      html: null,
      template_id: params.id ?? '',
      variables: valuesOf(template, form),
      text: null,
      headers: null,
      reply_to: '',
      tags: ['test'],
      idempotency_key: null,
    }
    await sendOwn(deps, team.id, item)
    return redirect(here(request), `A test is on its way to ${person.email}.`)
  },
}

export const templatePages = [page, frame, save, restore, test]
