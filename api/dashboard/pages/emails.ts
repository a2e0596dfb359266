/** A team's emails: the list with its filter, as CSV, and what is done with all that match. */

import { teamOrRefusal } from '../../../db/accounts/teams/view.ts'
import { EMAIL } from '../../../db/channels/channels.sql.ts'
import { EMAIL_LADDER } from '../../../db/channels/ladder.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { Refusal } from '../../../db/errors.ts'
import type { EmailFilter } from '../../../db/messages/emails/find.ts'
import {
  type Between,
  type Counted,
  countEmails,
  storedFilter,
} from '../../../db/messages/emails/matching.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { isTooSlow } from '../../../db/postgres/pool.ts'
import { beginWork } from '../../../db/upkeep/work/work.ts'
import { type Cell, plural, status, text, time, utc } from '../drawn/cell.ts'
import type { Field, Form, Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import {
  addressWith,
  anyOf,
  dayOf,
  filled,
  given,
  idGiven,
  onlyKnown,
  PAGE_SIZE,
  pageOf,
  wordGiven,
} from '../served/list.ts'
import { show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { csvFile } from './csv.ts'
import { FORCE, pauseWords } from './requeue.ts'
import { totalGiven, wordsOf, workAnswer } from './work.ts'

/** How many emails one press changes at most. */
const MOST = 10_000

/** The filter that the address, or a form, holds. @throws Refusal bad_request. */
export function filterOf(query: URLSearchParams): Omit<EmailFilter, 'team_id'> {
  return {
    recipient: given(query, 'recipient'),
    subject: given(query, 'subject'),
    id: given(query, 'id'),
    status: wordGiven(query, 'status', EMAIL_LADDER),
    domain: given(query, 'domain'),
    template_id: idGiven(query, 'template'),
    tag: given(query, 'tag'),
    from: dayOf(query, 'from'),
    // The last day counts whole.
    to: dayOf(query, 'to', 1),
  }
}

const NAMES = ['recipient', 'subject', 'id', 'status', 'domain', 'template', 'tag', 'from', 'to']

/** The parts of the filter that are set, as the address has them. */
const chosen = (query: URLSearchParams): URLSearchParams =>
  new URLSearchParams([...query].filter(([name, value]) => NAMES.includes(name) && value !== ''))

type Templates = Awaited<ReturnType<typeof templatesOfTeam>>

function filterForm({ team, query }: TeamRequest, templates: Templates): Section {
  const fields: Field[] = [
    { name: 'recipient', label: 'Recipient', type: 'search', placeholder: 'someone@example.com' },
    { name: 'subject', label: 'Subject contains', type: 'search' },
    { name: 'id', label: 'Message, request or idempotency ID', type: 'search' },
    { name: 'status', label: 'Status', type: 'select', options: anyOf(EMAIL_LADDER) },
    { name: 'domain', label: 'From domain', type: 'search' },
    {
      name: 'template',
      label: 'Template',
      type: 'select',
      options: [...anyOf([]), ...templates.map(({ id, name }) => ({ value: id, label: name }))],
    },
    { name: 'tag', label: 'Tag', type: 'search' },
    { name: 'from', label: 'From day (UTC)', type: 'date' },
    { name: 'to', label: 'To day', type: 'date' },
  ]
  const search = chosen(query)
  const here = teamPath(team, 'emails')
  return {
    kind: 'filter',
    action: here,
    method: 'get',
    fields: filled(fields, query),
    submit: 'Find',
    reset: search.size > 0 ? { href: here, label: 'Clear' } : null,
    more: [
      { href: `${here}.csv?${search}`, label: 'CSV' },
      ...(team.role === 'viewer' ? [] : [{ href: `${here}/all?${search}`, label: 'Bulk actions' }]),
    ],
  }
}

const recipients = ([first = '', ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`

/** The template of an email, by its name as long as there is one. */
function templateCell(team: { id: string }, id: string | null, templates: Templates): Cell {
  if (id === null) return text('')
  const template = templates.find((candidate) => candidate.id === id)
  return template ? text(template.name, { href: teamPath(team, 'templates', id) }) : text('deleted')
}

function rowOf({ team, now }: TeamRequest, email: ListedEmail, templates: Templates) {
  const { id, subject, from_address, to_emails, tags, template_id, created_at } = email
  return {
    cells: [
      status(email.status),
      text(recipients(to_emails)),
      text(subject, { href: teamPath(team, 'emails', id), detail: `from ${from_address}` }),
      templateCell(team, template_id, templates),
      text(tags.join(', ')),
      time(created_at, now),
    ],
  }
}

/** No email of the team is older. */
const beginningOf = async ({ team }: TeamRequest, { database }: PageDeps): Promise<Date> =>
  new Date((await teamOrRefusal(database, team.id)).created_at)

/** The list, or why there is none. */
async function listSection(request: TeamRequest, deps: PageDeps, templates: Templates): Promise<Section> {
  const { team, query, now } = request
  const filter = { ...filterOf(query), team_id: team.id }
  const page = { before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  try {
    const search = { ...filter, since: await beginningOf(request, deps), now }
    const { emails, reached } = await searchEmails({ ...deps, tx: deps.database }, search, page)
    const { rows, next } = pageOf(request, emails, ({ id }) => id, reached)
    const further = reached === null ? undefined : next.at(-1)
    const filtered = chosen(query).size > 0
    return {
      kind: 'table',
      id: 'list',
      live: query.get('before') === null,
      columns: ['Status', 'To', 'Subject', 'Template', 'Tags', 'Accepted'].map((label) => ({ label })),
      rows: rows.map((email) => rowOf(request, email, templates)),
      next,
      ...(further ? { start: further } : {}),
      empty: further
        ? 'Nothing matches so far: there are many emails, and older ones were not looked at yet.'
        : filtered
          ? 'No email matches.'
          : 'No emails yet. Send the first one with the API.',
      ...(filtered || further
        ? {}
        : { start: { href: teamPath(team, 'integration'), label: 'How to send' } }),
    }
  } catch (error) {
    if (!isTooSlow(error)) throw error
    const text = 'Name a recipient or an id, or choose fewer days.'
    return {
      kind: 'alerts',
      calm: '',
      alerts: [{ tone: 'warn', title: 'This took too long and was stopped', text }],
    }
  }
}

const list: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails',
  access: 'viewer',
  lags: true,
  async handle(request, deps) {
    const templates = await templatesOfTeam(deps.database, request.team.id)
    const sections = [filterForm(request, templates), await listSection(request, deps, templates)]
    return show({ title: 'Emails', sections })
  },
}

/** How many emails a file reads at a time. */
const LOT = 500

const HEADER = ['id', 'accepted', 'status', 'from', 'to', 'subject', 'tags', 'template', 'key', 'provider_id']

async function* csvRows(request: TeamRequest, deps: PageDeps) {
  const { team, query, now } = request
  const filter = { ...filterOf(query), team_id: team.id, since: await beginningOf(request, deps), now }
  for (let before: string | undefined; ; ) {
    const page = { before, limit: LOT }
    const { emails, reached } = await searchEmails({ ...deps, tx: deps.database }, filter, page)
    for (const email of emails) {
      const { id, created_at, from_address, to_emails, subject, tags } = email
      yield [id, created_at, email.status, from_address, to_emails.join(' '), subject, tags.join(' ')].concat(
        email.template_id ?? '',
        email.idempotency_key ?? '',
        email.provider_message_id ?? '',
      )
    }
    before = reached ?? emails.at(-1)?.id
    if (reached === null && emails.length < LOT) return
  }
}

const csv: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails.csv',
  access: 'viewer',
  lags: true,
  handle: async (request, deps) => {
    onlyKnown(request.query, NAMES)
    const file = await csvFile('emails', HEADER, csvRows(request, deps))
    await noteLook(request, deps, { action: 'email.export', subject: chosen(request.query).toString() })
    return file
  },
}

/** What a press would change: how many, in words, and between which of them. */
type Bulk = { many: string; count: number; between: Between }

/** A button for all that match; the filter goes along, and the first and the last of what was counted. */
const bulkForm = (
  { team, query }: TeamRequest,
  { between, count }: Bulk,
  verb: 'requeue' | 'delete',
  form: Pick<Form, 'submit' | 'confirm'> & Partial<Form>,
): Form => ({
  action: teamPath(team, 'emails', 'all', verb),
  method: 'post',
  fields: [...chosen(query), ...Object.entries(between), ['total', String(count)] as const].map(
    ([name, value]) => ({
      name,
      label: '',
      type: 'hidden' as const,
      value,
    }),
  ),
  ...form,
})

const requeueing = (request: TeamRequest, bulk: Bulk): Section => {
  const form = bulkForm(request, bulk, 'requeue', {
    submit: `Requeue what waits among ${bulk.many}`,
    confirm: `Requeue what waits among ${bulk.many}?`,
  })
  const options = [{ value: FORCE, label: 'also those that bounced because a server refused them outright' }]
  return {
    kind: 'form',
    title: 'Requeue',
    note: 'Tries those again that no provider has taken yet. The others stay as they are.',
    ...form,
    fields: [...form.fields, { name: 'force', label: 'Which ones', type: 'checks', options }],
  }
}

const deletion = (request: TeamRequest, bulk: Bulk): Section => ({
  kind: 'form',
  title: 'Delete',
  note: 'Deletes the emails with their timelines. This cannot be undone.',
  ...bulkForm(request, bulk, 'delete', {
    submit: `Delete ${bulk.many}`,
    tone: 'danger',
    confirm: `Delete ${bulk.many} for good?`,
  }),
})

const HOW_MANY = MOST.toLocaleString('en-US')

/** How many match, as far as they were counted. */
function countWords({ count, lookedTo }: Counted): string {
  if (count > MOST) return `more than ${HOW_MANY} emails`
  return lookedTo === null ? plural(count, 'email') : `at least ${plural(count, 'email')}`
}

const all: TeamPage = {
  method: 'GET',
  path: '/teams/:team/emails/all',
  access: 'editor',
  async handle(request, deps) {
    const { team, query, now } = request
    onlyKnown(query, NAMES)
    const at = { tx: deps.database, now, since: await beginningOf(request, deps) }
    const counted = await countEmails(at, team.id, { filter: filterOf(query), most: MOST + 1 })
    const { count, between, lookedTo } = counted
    const here = addressWith({ ...request, path: teamPath(team, 'emails') }, {})
    const filter = [...chosen(query)].map(([name, value]) => `${name}: ${value}`).join(', ')
    const bulk = between && {
      count: Math.min(count, MOST),
      many: count > MOST ? `the newest ${HOW_MANY} emails` : plural(count, 'email'),
      between,
    }
    const limits = [
      ...(bulk
        ? ['What is accepted from now on is left alone.']
        : ['Nothing matches, so there is nothing to do.']),
      ...(lookedTo === null
        ? []
        : [`There are many emails: those from before ${utc(lookedTo.toISOString())} were not looked at.`]),
    ]
    return show({
      title: `Bulk actions: ${countWords(counted)}`,
      lead: filter === '' ? 'No filter is set: these are all emails of the team.' : filter,
      back: { href: here, label: 'Back to the list' },
      sections: [
        { kind: 'text', paragraphs: limits },
        ...(bulk ? [requeueing(request, bulk)] : []),
        ...(bulk && team.role === 'owner' ? [deletion(request, bulk)] : []),
      ],
    })
  },
}

/** Between which emails those lie that the page counted. @throws Refusal bad_request without. */
function betweenOf(form: URLSearchParams): Between {
  const newest = idGiven(form, 'newest')
  const oldest = idGiven(form, 'oldest')
  if (newest !== undefined && oldest !== undefined) return { newest, oldest }
  throw new Refusal('bad_request', 'this form says not which emails were counted: open the page again')
}

/** Requeues or deletes all that were counted. */
const bulk = (verb: 'requeue' | 'delete'): TeamPage => ({
  method: 'POST',
  path: `/teams/:team/emails/all/${verb}`,
  access: verb === 'delete' ? 'owner' : 'editor',
  async handle({ team, form, person }, deps) {
    const force = form.get('force') === FORCE
    const search = decodeURIComponent(chosen(form).toString())
    const words = force ? `${search} with the refused ones`.trim() : search
    const given = { filter: storedFilter(filterOf(form)), between: betweenOf(form), most: MOST, force, words }
    const total = totalGiven(form)
    const wanted = { kind: `email.${verb}` as const, given, total, team_id: team.id, actor: person.email }
    const work = await beginWork(deps, wanted)
    deps.wake('do-work')
    if (verb === 'requeue') deps.wake('deliver-email')
    const said = wordsOf(work).outcome(work.result)
    const paused =
      verb === 'requeue' && Number(work.result.changed) > 0 ? await pauseWords(deps, EMAIL, person) : ''
    return workAnswer(work, `${teamPath(team, 'emails')}?${chosen(form)}`, said + paused)
  },
})

export const emailsPages = [list, csv, all, bulk('requeue'), bulk('delete')]
