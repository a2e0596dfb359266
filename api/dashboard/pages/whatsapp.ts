/** Lists the WhatsApp messages of a team with a filter, also as CSV. */

import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { findWhatsappEnds } from '../../../db/messages/whatsapp/ended.sql.ts'
import { lastFailures } from '../../../db/messages/whatsapp/events.sql.ts'
import { meaningOf } from '../../../db/messages/whatsapp/meaning.ts'
import type { WhatsappRow } from '../../../db/messages/whatsapp/messages.sql.ts'
import { type MessageFilter, messagesFound } from '../../../db/messages/whatsapp/search.sql.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { dayBefore } from '../../../db/stats/daily/fold.ts'
import { figuresSince } from '../../../db/stats/daily/stats.sql.ts'
import { normalisePhone } from '../../../db/validation/phone.ts'
import { text, time } from '../components/cell.ts'
import { parseZone } from '../components/zone.ts'
import { buildAlerts, fromReplica, get } from '../server/builders.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, DAY_RANGE, defineFilter, defineId, search } from '../server/filter.ts'
import { buildList, fromList, pageById } from '../server/list.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { numberIn } from '../server/search.ts'
import { TEXTS } from '../texts.ts'
import { listedState, SCHEDULED_STATUS, scheduledApart, statusFilter } from './scheduled.ts'
import { defaultNumberAlert } from './whatsapp-default-number.ts'

/** The statuses in the filter, in the order in which a message has them. */
const STATUSES_SHOWN = [SCHEDULED_STATUS, 'queued', 'sent', 'delivered', 'read', 'failed'] as const

const filter = defineFilter(
  { q: search('Search', { placeholder: 'Number or ID' }), status: chips(STATUSES_SHOWN) },
  {
    recipient: search('Number', { placeholder: '+15551234567' }),
    id: search('ID', { placeholder: 'Any ID or idempotency key' }),
    template: defineId('Template'),
    ...DAY_RANGE,
  },
)

/** Parses the filter from the URL. @throws RequestError bad_request. */
function parseMessageFilter({ query, cookies }: TeamRequest): MessageFilter {
  const { q, status, recipient, id, template, ...asked } = filter.read(query, parseZone(cookies('zone')))
  const sought = q === undefined ? null : numberIn(q)
  const twice = sought === null ? 'id' : 'recipient'
  if (q !== undefined && { id, recipient }[twice] !== undefined)
    throw invalidField('q', fill(TEXTS.otherInSearch, { thing: twice }))
  const number = sought ?? recipient
  const phone = number === undefined ? null : normalisePhone(number)
  if (number !== undefined && phone === null)
    throw invalidField(sought ? 'q' : 'recipient', 'must be a phone number, such as +15551234567')
  return {
    ...asked,
    ...statusFilter(status),
    recipients: phone ? [phone.e164] : undefined,
    id: sought === null ? (q ?? id) : id,
    template_id: template,
  }
}

/** Returns why messages failed, by their IDs. */
export async function loadProblems(
  { team }: { team: { id: string } },
  { database }: Pick<PageDeps, 'database'>,
  rows: readonly { id: string; status: string }[],
) {
  const failed = rows.filter(({ status }) => status === 'failed').map(({ id }) => id)
  const failures = new Map((await lastFailures(database, team.id, failed)).map((row) => [row.id, row]))
  const problemOf = (id: string) => meaningOf(failures.get(id)?.code ?? null) ?? failures.get(id)?.detail
  return new Map(failed.map((id) => [id, problemOf(id) || 'No reason given']))
}

const list = get(fromReplica('viewer'), '/teams/:team/whatsapp', async (request, deps) => {
  const { team, query, path, now } = request
  const { database } = deps
  const templates = await whatsappTemplatesOfTeam(database, team.id)
  const names = new Map(templates.map(({ id, name }) => [id, name]))
  const meant = parseMessageFilter(request)
  const page = await pageById(request, (place) => messagesFound(database, team.id, meant, place))
  const figures = await figuresSince(database, team.id, WHATSAPP, dayBefore(now, 29))
  const hasCountries = page.rows.some(({ country }) => country !== null)
  const problems = await loadProblems(request, deps, page.rows)
  const ends = await findWhatsappEnds(database, team.id, page.rows)
  const choices = new Map(templates.map(({ id, name, language }) => [id, `${name} (${language})`]))
  return show({
    title: 'WhatsApp',
    actions: {
      links: [
        { href: teamPath(team, 'whatsapp-opt-outs'), label: 'Opt-outs' },
        { href: `${path}.csv?${filter.set(query)}`, label: 'Export as CSV', menu: true },
      ],
    },
    sections: [
      ...buildAlerts([await defaultNumberAlert(request, deps)]),
      ...filter.shown(request, {
        choices: { template: choices },
        figures: await scheduledApart(request, deps, WHATSAPP, figures),
      }),
      buildList(
        page,
        ({ id, template_id, ...message }) => ({
          Status: listedState(message, now, ends.get(id)),
          To: text(message.recipient, { href: fromList(request, teamPath(team, 'whatsapp', id)) }),
          Template: text(names.get(template_id) ?? 'deleted', {
            href: names.has(template_id) ? teamPath(team, 'whatsapp-templates', template_id) : undefined,
          }),
          Problem: problems.size > 0 && { text: problems.get(id) ?? '' },
          Country: hasCountries && text(message.country),
          Accepted: time(message.created_at, now),
        }),
        {
          fresh: true,
          main: 'To',
          grow: ['To', problems.size > 0 ? 'Problem' : 'Template'],
          filtered: filter.set(query).size > 0 || !page.first,
          nothing: 'No message matches.',
          none: 'No messages yet. Send the first one with the API.',
          start: { href: teamPath(team, 'integration'), label: 'How to send' },
        },
      ),
    ],
  })
})

const HEADER = [
  ...['Id', 'Accepted', 'Status', 'To', 'WhatsApp id', 'Template', 'Language', 'Key', 'Provider id'],
  ...['Category', 'Type', 'Billable'],
]

const csv = defineCsv<WhatsappRow>(
  '/teams/:team/whatsapp.csv',
  { name: 'whatsapp', action: 'whatsapp.export', header: HEADER, filter },
  async (request, { database }) => {
    const { team } = request
    const templates = new Map((await whatsappTemplatesOfTeam(database, team.id)).map((row) => [row.id, row]))
    const meant = parseMessageFilter(request)
    return {
      read: async (place) => ({ rows: await messagesFound(database, team.id, meant, place), reached: null }),
      keyOf: ({ id }) => id,
      line({ pricing, template_id, ...row }) {
        const template = templates.get(template_id)
        return [
          ...[row.id, row.created_at, row.status, row.recipient, row.wa_id],
          ...[
            template?.name ?? template_id,
            template?.language,
            row.idempotency_key,
            row.provider_message_id,
          ],
          ...[pricing?.category, pricing?.type, pricing?.billable?.toString()],
        ]
      },
    }
  },
)

export const whatsappPages = [list, csv]
