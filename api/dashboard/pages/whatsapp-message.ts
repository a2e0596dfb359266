/** The page of a WhatsApp message: status, timeline, why it waits, parameters and actions. */

import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { findWhatsappEnds } from '../../../db/messages/whatsapp/ended.sql.ts'
import { type Remedy, remedyFor } from '../../../db/messages/whatsapp/meaning.ts'
import { messageWithState, type ShownMessage, showMessage } from '../../../db/messages/whatsapp/show.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { text } from '../components/cell.ts'
import type { Form, Link, Section } from '../components/section.ts'
import { waitingAlerts } from '../components/timeline.ts'
import { bubbleSection } from '../components/whatsapp-bubble.ts'
import { lastFailure, messageMoments, messageSentence } from '../components/whatsapp-timeline.ts'
import { auditRead } from '../server/action.ts'
import { buildAlerts, buildFacts, compact, get, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { backTo } from '../server/list.ts'
import { type PageAnswer, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { orDeleted } from './deleted-message.ts'
import { buildIds, closedContent, messageTimes, whatHappened, whyItWaits } from './message-sections.ts'
import { requeueAsAsked, requeueForms, requeueQuestion } from './requeue.ts'
import { cancelForm, moveForm, scheduledActs, shownState } from './scheduled.ts'

type Template = Awaited<ReturnType<typeof whatsappTemplatesOfTeam>>[number]

const findTemplate = async (
  { team_id, template_id }: Pick<ShownMessage, 'team_id' | 'template_id'>,
  { database }: PageDeps,
): Promise<Template | undefined> =>
  (await whatsappTemplatesOfTeam(database, team_id)).find(({ id }) => id === template_id)

const filling = ({ parameters }: ShownMessage, template: Template | undefined): Section[] =>
  compact([
    ...bubbleSection(template?.definition ?? {}, 'Message', parameters),
    Object.keys(parameters).length > 0 &&
      buildFacts(
        Object.fromEntries(Object.entries(parameters).map(([label, value]) => [label, text(value)])),
        { title: 'Variables' },
      ),
  ])

/** Shows the content of a message. An operator who isn't a member opens it on a separate page. */
function buildContent(message: ShownMessage, template: Template | undefined, { team }: TeamRequest) {
  if (team.member || Object.keys(message.parameters).length === 0) return filling(message, template)
  return [closedContent('Variables', teamPath(team, 'whatsapp', message.id, 'content'))]
}

const opened = get('viewer', '/teams/:team/whatsapp/:id/content', async (request, deps) => {
  const { team, params, now } = request
  const message = await showMessage({ tx: deps.database, now }, team.id, params.id)
  await auditRead(request, deps, { action: 'whatsapp.open', subject: message.id })
  const back = { href: teamPath(team, 'whatsapp', message.id), label: 'Back to the message' }
  return show({
    title: `To ${message.to}`,
    back,
    sections: filling(message, await findTemplate(message, deps)),
  })
})

function pricingText({ category, type, billable }: NonNullable<ShownMessage['pricing']>): string {
  const charge = billable === null ? null : billable ? 'billable' : 'free'
  return [category, type, charge].filter((part) => part !== null).join(', ')
}

/** Builds the right column: the recipient and template, which come first on phones, other facts, and collapsed IDs. */
function facts(row: ShownMessage, template: Template | undefined, { team, now }: TeamRequest): Section[] {
  const words = template ? `${template.name} (${template.language})` : 'deleted'
  const first = {
    To: text(row.to, { copy: true }),
    Country: row.country !== null && text(row.country),
    Template: text(words, { href: template && teamPath(team, 'whatsapp-templates', template.id) }),
  }
  const own = {
    'WhatsApp ID': row.wa_id !== null && text(row.wa_id, { copy: true }),
    Pricing: row.pricing !== null && text(pricingText(row.pricing)),
    ...messageTimes(row, now),
  }
  return [buildFacts(first, { id: 'first' }), buildFacts(own, { id: 'facts' }), buildIds(row)]
}

type Help = { link: Link | null; title: string; text: string }

/** Returns what helps against the cause of a failed message, with a link to it. Null if that is unknown. */
function findHelp(
  row: ShownMessage,
  template: Template | undefined,
  { team, person }: TeamRequest,
): Help | null {
  const remedy = row.status === 'failed' ? remedyFor(lastFailure(row)?.code ?? null) : null
  if (remedy === null) return null
  const search = new URLSearchParams({ team: team.id, q: row.to })
  const templates = teamPath(team, 'whatsapp-templates')
  const helps: Record<Remedy, Help> = {
    again: { link: null, title: 'Wait, then send it again', text: 'Meta may accept it later.' },
    recipient: {
      link: { href: `/find?${search}`, label: 'Search for the number', main: false },
      title: 'Reach the recipient another way',
      text: 'Sending the message again has the same result.',
    },
    template: {
      link: template
        ? { href: `${templates}/${template.id}`, label: 'Open the template' }
        : { href: templates, label: 'WhatsApp templates' },
      title: 'Correct the template or the variables',
      text: 'Sending the message again before that has the same result.',
    },
    opt_out: {
      link: { href: teamPath(team, 'whatsapp-opt-outs'), label: 'Show opt-outs' },
      title: 'The recipient has to opt in again',
      text: 'Until then, only marketing messages fail. Other messages are sent.',
    },
    account: {
      link: person.operator ? { href: '/operator/numbers', label: 'WhatsApp numbers' } : null,
      title: 'The owner of the WhatsApp account has to fix it',
      text: `${person.operator ? '' : 'Tell an operator. '}Send the message again once it is fixed.`,
    },
  }
  return helps[remedy]
}

/** Sending again is only the likely next step if it helps against the cause. */
const requeueing = (forms: readonly Form[], row: ShownMessage): Form[] => {
  const code = lastFailure(row)?.code ?? null
  if (row.status !== 'failed' || code === null || remedyFor(code) === 'again') return [...forms]
  return forms.map((form) => ({ ...form, tone: 'quiet', menu: remedyFor(code) !== null }))
}

const DELETED = { noun: 'WhatsApp message', path: 'whatsapp', list: 'WhatsApp' }

async function showPage(request: TeamRequest<'id'>, deps: PageDeps): Promise<PageAnswer> {
  const { team, params, now } = request
  const { database } = deps
  const { message: row, state } = await messageWithState({ tx: database, now }, team.id, params.id)
  const template = await findTemplate(row, deps)
  const edits = team.role !== 'viewer'
  const way = edits ? requeueWay(state) : null
  const path = teamPath(team, 'whatsapp', row.id)
  const again = requeueForms(way, row.waiting?.state, `${path}/requeue`)
  const help = findHelp(row, template, request)
  const ended = (await findWhatsappEnds(database, team.id, [row])).get(row.id)
  return show({
    title: `To ${row.to}`,
    state: shownState(row, ended),
    lead: messageSentence(row, ended),
    back: backTo(request, teamPath(team, 'whatsapp'), 'WhatsApp'),
    actions: {
      links: compact([help?.link && { main: edits, ...help.link }]),
      forms: compact([requeueing(again, row), edits && cancelForm(row, 'message', path)]),
    },
    sections: compact([
      ...whyItWaits(waitingAlerts(row, request), row.waiting?.state),
      ...buildAlerts([help && { tone: 'warn', title: help.title, text: help.text }], {
        id: 'help',
        live: true,
      }),
      edits && moveForm(row, path, request.cookies('zone')),
      whatHappened(messageMoments(row, request)),
      ...buildContent(row, template, request),
    ]),
    aside: facts(row, template, request),
  })
}

const message = get('viewer', '/teams/:team/whatsapp/:id', orDeleted(DELETED, showPage))

const requeue = post('editor', '/teams/:team/whatsapp/:id/requeue', async (request, deps) => {
  const said = await requeueAsAsked(request, deps, WHATSAPP)
  return redirect(teamPath(request.team, 'whatsapp', request.params.id), said)
}).confirm((request, deps) => requeueQuestion(request, deps, WHATSAPP, 'this message'))

export const whatsappMessagePages = [message, opened, requeue, ...scheduledActs(WHATSAPP, 'message')]
