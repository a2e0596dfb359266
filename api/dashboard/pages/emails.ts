/** A team's emails: the list with its filter, and as CSV. */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { figuresSince } from '../../../db/figures/daily/figures.sql.ts'
import { dayBefore } from '../../../db/figures/daily/fold.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { isTooSlow } from '../../../db/postgres/pool.ts'
import { type Cell, status, text, time } from '../drawn/cell.ts'
import type { Field, Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import { setChips, statusChips } from '../served/chips.ts'
import { csvFile, rowsBy } from '../served/csv.ts'
import type { PageDeps } from '../served/deps.ts'
import { anyOf, filled, fromList, idGiven, onlyKnown, PAGE_SIZE, pageOf } from '../served/list.ts'
import { get, lagging, some, tableOf } from '../served/made.ts'
import { show, type TeamRequest, teamPath } from '../served/page.ts'
import { recipientsCell } from './email-place.ts'
import { beginningOf, chosen, filterOf, NAMES } from './emails-filter.ts'

type Templates = Awaited<ReturnType<typeof templatesOfTeam>>

/** What a part of the filter is called, where it is set. */
const LABELS: Readonly<Record<string, string>> = {
  q: 'Search',
  recipient: 'Recipient',
  subject: 'Subject contains',
  id: 'ID',
  domain: 'From domain',
  template: 'Template',
  broadcast: 'Broadcast',
  tag: 'Tag',
  from: 'From',
  to: 'To',
}

function filterForm({ team, query }: TeamRequest, templates: Templates): Section {
  const further: Field[] = [
    { name: 'recipient', label: 'Recipient', type: 'search', placeholder: 'someone@example.com' },
    { name: 'subject', label: 'Subject contains', type: 'search' },
    { name: 'id', label: 'Message, request or idempotency ID', type: 'search' },
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
  const fields: Field[] = [
    { name: 'q', label: 'Search', type: 'search', placeholder: 'Recipient, ID or words of the subject' },
    { name: 'status', label: '', type: 'hidden' },
  ]
  const search = chosen(query)
  const here = teamPath(team, 'emails')
  return {
    kind: 'filter',
    action: here,
    method: 'get',
    fields: filled(fields, query),
    further: filled(further, query),
    submit: 'Find',
    reset: search.size > 0 ? { href: here, label: 'Clear' } : null,
    more: some([
      { href: `${here}.csv?${search}`, label: 'CSV' },
      team.role !== 'viewer' && { href: `${here}/all?${search}`, label: 'Bulk actions' },
    ]),
  }
}

/** The template of an email, by its name as long as there is one. */
function templateCell(team: { id: string }, id: string | null, templates: Templates): Cell {
  if (id === null) return text('')
  const template = templates.find((candidate) => candidate.id === id)
  return template ? text(template.name, { href: teamPath(team, 'templates', id) }) : text('deleted')
}

const shownOf = (request: TeamRequest, templates: Templates) => (email: ListedEmail) => ({
  Status: status(email.status),
  Recipient: recipientsCell(email.to_emails),
  Subject: text(email.subject || '(no subject)', {
    href: fromList(request, teamPath(request.team, 'emails', email.id)),
  }),
  Template: templateCell(request.team, email.template_id, templates),
  Accepted: time(email.created_at, request.now),
})

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
    return tableOf(rows, shownOf(request, templates), {
      keyOf: ({ id }) => id,
      id: 'list',
      live: query.get('before') === null,
      fresh: true,
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
    })
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

const list = get(lagging('viewer'), '/teams/:team/emails', async (request, deps) => {
  const templates = await templatesOfTeam(deps.database, request.team.id)
  const since = dayBefore(request.now, 29)
  const figures = await figuresSince(deps.database, request.team.id, EMAIL, since)
  const names = new Map(templates.map(({ id, name }) => [id, name]))
  const set = chosen(request.query)
  return show({
    title: 'Emails',
    sections: [
      filterForm(request, templates),
      ...setChips(request, set, LABELS, (name, value) =>
        name === 'template' ? (names.get(value) ?? value) : value,
      ),
      statusChips(request, EMAIL_LADDER, figures, set),
      await listSection(request, deps, templates),
    ],
  })
})

const HEADER = ['id', 'accepted', 'status', 'from', 'to', 'subject', 'tags', 'template', 'key', 'provider_id']

async function* csvRows(request: TeamRequest, deps: PageDeps) {
  const { team, query, now } = request
  const filter = { ...filterOf(query), team_id: team.id, since: await beginningOf(request, deps), now }
  const read = async (before: string | undefined, limit: number) => {
    const { emails, reached } = await searchEmails({ ...deps, tx: deps.database }, filter, { before, limit })
    return { rows: emails, reached }
  }
  for await (const email of rowsBy(read, ({ id }) => id)) {
    const { id, created_at, from_address, to_emails, subject, tags } = email
    const { template_id, idempotency_key, provider_message_id } = email
    yield [
      ...[id, created_at, email.status, from_address, to_emails.join(' '), subject, tags.join(' ')],
      ...[template_id, idempotency_key, provider_message_id],
    ]
  }
}

const csv = get(lagging('viewer'), '/teams/:team/emails.csv', async (request, deps) => {
  onlyKnown(request.query, NAMES)
  const file = await csvFile('emails', HEADER, csvRows(request, deps))
  await noteLook(request, deps, { action: 'email.export', subject: chosen(request.query).toString() })
  return file
})

export const emailsPages = [list, csv]
