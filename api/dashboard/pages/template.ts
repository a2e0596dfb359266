/** One template: its preview with sample values, a test send, a new version, and the versions that there were. */
import { domainsOfTeam } from '../../../db/domains/domains.sql.ts'
import { acceptEmails } from '../../../db/emails/accept.ts'
import { Refusal } from '../../../db/errors.ts'
import { updateTemplate } from '../../../db/templates/save.ts'
import {
  currentVersion,
  type ListedVersion,
  templatesOfTeam,
  type VersionRow,
  versionsOfTemplate,
} from '../../../db/templates/templates.sql.ts'
import { parseMailbox } from '../../../db/text/address.ts'
import { compileTemplate, fillSlots } from '../../../db/text/slots.ts'
import { act, inTeam } from '../act.ts'
import { text, time } from '../cell.ts'
import { frameHeaders } from '../guard.ts'
import { type PageDeps, raw, redirect, show, type TeamPage, type TeamRequest, teamPath } from '../page.ts'
import type { Field, Section } from '../section.ts'
import { partFields, partOf } from './templates.ts'

const MOST_VERSIONS = 50

const here = ({ team, params }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'templates', params.id ?? '', ...rest)

type Template = { name: string; version: VersionRow }

/** @throws Refusal not_found. */
async function templateOf({ team, params }: TeamRequest, { database }: PageDeps): Promise<Template> {
  const version = await currentVersion(database, team.id, params.id ?? '')
  const template = (await templatesOfTeam(database, team.id)).find(({ id }) => id === params.id)
  if (!version || !template) throw new Refusal('not_found', 'there is no such template')
  return { name: template.name, version }
}

/** The value of each slot: what was given, else its name, so that its place can be seen. */
const valuesOf = ({ slots }: VersionRow, given: URLSearchParams): Record<string, string> =>
  Object.fromEntries(slots.map((slot) => [slot, given.get(`v.${slot}`) ?? `[${slot}]`]))

const valueFields = (values: Record<string, string>): Field[] =>
  Object.entries(values).map(([slot, value]) => ({ name: `v.${slot}`, label: slot, type: 'text', value }))

function preview({ version }: Template, request: TeamRequest): Section[] {
  const values = valuesOf(version, request.query)
  const search = new URLSearchParams()
  for (const [slot, value] of Object.entries(values)) search.set(`v.${slot}`, value)
  const samples: Section = {
    kind: 'filter',
    title: 'Preview',
    action: here(request),
    method: 'get',
    fields: valueFields(values),
    submit: 'Show with these values',
    reset: null,
  }
  const filled = version.body_text === '' ? '' : fillSlots(compileTemplate(version.body_text), values, 'none')
  return [
    ...(version.slots.length > 0 ? [samples] : []),
    { kind: 'frame', title: 'HTML', src: `${here(request, 'preview')}?${search}` },
    ...(filled === '' ? [] : [{ kind: 'code' as const, title: 'Plain text', code: filled }]),
  ]
}

async function testForm(
  { version }: Template,
  request: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const domains = await domainsOfTeam(database, request.team.id)
  const verified = domains.find(({ status }) => status === 'verified')
  const hidden = valueFields(valuesOf(version, request.query)).map((field) => ({
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

const editForm = ({ version }: Template, request: TeamRequest): Section => ({
  kind: 'form',
  folded: true,
  action: here(request, 'versions'),
  method: 'post',
  submit: 'Save a new version',
  fields: [
    ...partFields({ html: version.html, text: version.body_text }),
    {
      name: 'break',
      label: 'Slots',
      type: 'checks',
      options: [
        {
          value: 'yes',
          label: 'Save even if a slot is new: calls that do not give it are refused from then on',
        },
      ],
    },
  ],
})

function history(versions: readonly ListedVersion[], { version }: Template, request: TeamRequest): Section {
  return {
    kind: 'table',
    title: 'Versions',
    columns: ['Made', 'Slots', 'Id', ''].map((label) => ({ label })),
    rows: versions.map(({ id, slots, created_at }, index) => {
      const older = versions[index + 1]
      return {
        cells: [
          time(created_at, request.now),
          text(slots.join(', ')),
          text(id, { code: true, detail: id === version.id ? 'the current one' : '' }),
          older
            ? text('What changed', { href: here(request, 'versions', older.id, id) })
            : text('The first one'),
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
      sections: [
        {
          kind: 'facts',
          facts: [
            { label: 'Id', cell: text(params.id ?? '', { code: true, copy: true }) },
            { label: 'Slots', cell: text(template.version.slots.join(', ')) },
            { label: 'Used by', cell: text('Emails made from it', { href: emails }) },
          ],
        },
        ...preview(template, request),
        ...(edits ? [await testForm(template, request, deps), editForm(template, request)] : []),
        history(versions, template, request),
      ],
    })
  },
}

const frame: TeamPage = {
  method: 'GET',
  path: '/teams/:team/templates/:id/preview',
  access: 'viewer',
  async handle(request, deps) {
    const { version } = await templateOf(request, deps)
    const html = fillSlots(compileTemplate(version.html), valuesOf(version, request.query), 'html')
    return raw(frameHeaders(false), html)
  },
}

const save: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/versions',
  access: 'editor',
  async handle(request, deps) {
    const { team, params, form } = request
    const id = params.id ?? ''
    const { version } = await templateOf(request, deps)
    const parts = { html: partOf(form, 'html'), text: partOf(form, 'text') }
    const saved = await act(request, deps, inTeam(request, 'template.update', id), async (at) => {
      const made = await updateTemplate(at, team.id, id, parts)
      const fresh = made.slots.filter((slot) => !version.slots.includes(slot))
      if (fresh.length === 0 || form.get('break') === 'yes') return made
      const words = `this version needs ${fresh.join(', ')}, which the one before did not`
      throw new Refusal(
        'bad_request',
        `${words}: calls without would be refused. Tick the box to save it all the same`,
      )
    })
    return redirect(
      here(request),
      `The new version is in use: its slots are ${saved.slots.join(', ') || 'none'}.`,
    )
  },
}

const test: TeamPage = {
  method: 'POST',
  path: '/teams/:team/templates/:id/test',
  access: 'editor',
  async handle(request, deps) {
    const { team, params, form, person } = request
    const { name, version } = await templateOf(request, deps)
    const from = parseMailbox(form.get('from') ?? '')
    if (!from) throw new Refusal('bad_request', 'from must be an email address')
    const item = {
      path: '',
      from,
      to: [person.email],
      subject: `Test: ${name}`,
      html: null,
      template_id: params.id ?? '',
      variables: valuesOf(version, form),
      text: null,
      headers: null,
      reply_to: '',
      tags: ['test'],
      idempotency_key: null,
    }
    const [outcome] = await deps.database.transaction((tx) =>
      acceptEmails({ ...deps, tx }, { team_id: team.id, domain: null }, [item]),
    )
    if (outcome?.kind === 'refused') throw outcome.refusal
    deps.wake('deliver-email')
    return redirect(here(request), `A test is on its way to ${person.email}.`)
  },
}

export const templatePages = [page, frame, save, test]
