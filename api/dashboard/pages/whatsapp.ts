/** A team's WhatsApp messages: the list with its filter. */

import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { WHATSAPP_LADDER } from '../../../db/channels/whatsapp.ts'
import { Refusal } from '../../../db/errors.ts'
import { figuresSince } from '../../../db/figures/daily/figures.sql.ts'
import { dayBefore } from '../../../db/figures/daily/fold.ts'
import { type MessageFilter, messagesFound } from '../../../db/messages/whatsapp/find.sql.ts'
import { templatesOfTeam, type WhatsappTemplateRow } from '../../../db/messages/whatsapp/templates.sql.ts'
import { normalisePhone } from '../../../db/text/phone.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Field, Section } from '../drawn/section.ts'
import { setChips, statusChips } from '../served/chips.ts'
import {
  anyOf,
  dayOf,
  filled,
  fromList,
  given,
  idGiven,
  PAGE_SIZE,
  pageOf,
  wordGiven,
} from '../served/list.ts'
import { get, lagging, tableOf } from '../served/made.ts'
import { show, type TeamRequest, teamPath } from '../served/page.ts'
import { numberIn } from '../served/search.ts'

/** What a part of the filter is called, where it is set. */
const LABELS: Readonly<Record<string, string>> = {
  q: 'Search',
  recipient: 'Number',
  id: 'ID',
  template: 'Template',
  from: 'From',
  to: 'To',
}

/** The parts of the filter that are set, as the address has them. */
const chosen = (query: URLSearchParams): URLSearchParams =>
  new URLSearchParams(
    [...query].filter(([name, value]) => (name === 'status' || name in LABELS) && value !== ''),
  )

/** The filter that the address holds. @throws Refusal bad_request. */
function filterOf(query: URLSearchParams): MessageFilter {
  const typed = given(query, 'q')
  const isNumber = typed !== undefined && numberIn(typed) !== null
  const twice = typed === undefined ? undefined : given(query, isNumber ? 'recipient' : 'id')
  if (twice !== undefined)
    throw new Refusal('bad_request', 'q names another message than the field for it: clear one of them')
  const number = isNumber ? (numberIn(typed) ?? undefined) : given(query, 'recipient')
  const phone = number === undefined ? null : normalisePhone(number)
  if (number !== undefined && phone === null)
    throw new Refusal('bad_request', `${isNumber ? 'q' : 'recipient'} must be a number, such as +15551234567`)
  return {
    recipients: phone ? [phone.e164] : undefined,
    id: typed !== undefined && !isNumber ? typed : given(query, 'id'),
    status: wordGiven(query, 'status', WHATSAPP_LADDER),
    template_id: idGiven(query, 'template'),
    from: dayOf(query, 'from'),
    to: dayOf(query, 'to', 1),
  }
}

function filterForm({ team, query }: TeamRequest, templates: readonly WhatsappTemplateRow[]): Section {
  const here = teamPath(team, 'whatsapp')
  const fields: Field[] = [
    { name: 'q', label: 'Search', type: 'search', placeholder: 'Number, or any ID' },
    { name: 'status', label: '', type: 'hidden' },
  ]
  const further: Field[] = [
    { name: 'recipient', label: 'Number', type: 'search', placeholder: '+15551234567' },
    { name: 'id', label: 'Message, request or idempotency ID', type: 'search' },
    {
      name: 'template',
      label: 'Template',
      type: 'select',
      options: [
        ...anyOf([]),
        ...templates.map(({ id, name, language }) => ({ value: id, label: `${name} (${language})` })),
      ],
    },
    { name: 'from', label: 'From day (UTC)', type: 'date' },
    { name: 'to', label: 'To day', type: 'date' },
  ]
  return {
    kind: 'filter',
    action: here,
    method: 'get',
    fields: filled(fields, query),
    further: filled(further, query),
    submit: 'Find',
    reset: chosen(query).size > 0 ? { href: here, label: 'Clear' } : null,
  }
}

const list = get(lagging('viewer'), '/teams/:team/whatsapp', async (request, { database }) => {
  const { team, query, now } = request
  const templates = await templatesOfTeam(database, team.id)
  const names = new Map(templates.map(({ id, name }) => [id, name]))
  const page = { before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  const found = await messagesFound(database, team.id, filterOf(query), page)
  const { rows, next } = pageOf(request, found, ({ id }) => id)
  const figures = await figuresSince(database, team.id, WHATSAPP, dayBefore(now, 29))
  const set = chosen(query)
  const isEmpty = set.size === 0 && !query.has('before')
  return show({
    title: 'WhatsApp',
    sections: [
      filterForm(request, templates),
      ...setChips(request, set, LABELS, (name, value) =>
        name === 'template' ? (names.get(value) ?? value) : value,
      ),
      statusChips(request, WHATSAPP_LADDER, figures, set),
      tableOf(
        rows,
        (message) => ({
          Status: status(message.status),
          To: text(message.recipient, {
            href: fromList(request, teamPath(team, 'whatsapp', message.id)),
          }),
          Template: text(names.get(message.template_id) ?? 'deleted', {
            ...(names.has(message.template_id)
              ? { href: teamPath(team, 'whatsapp-templates', message.template_id) }
              : {}),
          }),
          Country: text(message.country),
          Accepted: time(message.created_at, now),
        }),
        {
          keyOf: (message) => message.id,
          id: 'list',
          live: !query.has('before'),
          fresh: true,
          next,
          empty: isEmpty ? 'No messages yet. Send the first one with the API.' : 'No message matches.',
          ...(isEmpty ? { start: { href: teamPath(team, 'integration'), label: 'How to send' } } : {}),
        },
      ),
    ],
  })
})

export const whatsappPages = [list]
