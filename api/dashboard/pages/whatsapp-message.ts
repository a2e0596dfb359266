/** The page of a WhatsApp message: status, timeline, why it waits, parameters and actions. */

import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { requeueWay } from '../../../db/delivery/requeue.ts'
import { messageWithState, type ShownMessage, showMessage } from '../../../db/messages/whatsapp/show.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { waitingAlerts } from '../components/timeline.ts'
import { bubbleSection } from '../components/whatsapp-bubble.ts'
import { messageMoments, messageSentence } from '../components/whatsapp-timeline.ts'
import { auditRead } from '../server/action.ts'
import { buildFacts, compact, get, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { backTo } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { buildIds, messageTimes, whatHappened, whyItWaits } from './message-sections.ts'
import { requeueAsAsked, requeueForms, requeueQuestion } from './requeue.ts'
import { cancelForm, moveForm, scheduledActs, shownState } from './scheduled.ts'

type Template = Awaited<ReturnType<typeof whatsappTemplatesOfTeam>>[number]

const findTemplate = async (
  { team_id, template_id }: Pick<ShownMessage, 'team_id' | 'template_id'>,
  { database }: PageDeps,
): Promise<Template | undefined> =>
  (await whatsappTemplatesOfTeam(database, team_id)).find(({ id }) => id === template_id)

/** Shows the message as the phone does, and its parameters. */
const filling = ({ parameters }: ShownMessage, template: Template | undefined): Section[] =>
  compact([
    ...bubbleSection(template?.definition ?? {}, 'Message', parameters),
    Object.keys(parameters).length > 0 &&
      buildFacts(
        Object.fromEntries(Object.entries(parameters).map(([label, value]) => [label, text(value)])),
        { title: 'Parameters' },
      ),
  ])

/** Shows the content of a message. An operator who isn't a member opens it on a separate page. */
function buildContent(
  message: ShownMessage,
  template: Template | undefined,
  { team }: TeamRequest,
): Section[] {
  if (team.member || Object.keys(message.parameters).length === 0) return filling(message, template)
  const href = teamPath(team, 'whatsapp', message.id, 'content')
  const note = 'You aren’t a member of this team, so opening it is recorded in the audit log.'
  return [{ kind: 'actions', title: 'Parameters', note, links: [{ href, label: 'Open the content' }] }]
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

/** Describes how Meta charges for the message. */
function pricingText({ category, type, billable }: NonNullable<ShownMessage['pricing']>): string {
  const charge = billable === null ? null : billable ? 'billable' : 'free'
  return [category, type, charge].filter((part) => part !== null).join(', ')
}

/** Builds the right column: facts, and the IDs collapsed. */
function facts(row: ShownMessage, template: Template | undefined, { team, now }: TeamRequest): Section[] {
  const words = template ? `${template.name} (${template.language})` : 'deleted'
  const own = {
    To: text(row.to, { copy: true }),
    'WhatsApp ID': row.wa_id !== null && text(row.wa_id, { copy: true }),
    Country: row.country !== null && text(row.country),
    Template: text(words, { href: template && teamPath(team, 'whatsapp-templates', template.id) }),
    Pricing: row.pricing !== null && text(pricingText(row.pricing)),
    ...messageTimes(row, now),
  }
  return [buildFacts(own, { id: 'facts' }), buildIds(row)]
}

const message = get('viewer', '/teams/:team/whatsapp/:id', async (request, deps) => {
  const { team, params, now } = request
  const { database } = deps
  const { message: row, state } = await messageWithState({ tx: database, now }, team.id, params.id)
  const template = await findTemplate(row, deps)
  const edits = team.role !== 'viewer'
  const way = edits ? requeueWay(state) : null
  const path = teamPath(team, 'whatsapp', row.id)
  return show({
    title: `To ${row.to}`,
    state: shownState(row),
    lead: messageSentence(row),
    back: backTo(request, teamPath(team, 'whatsapp'), 'WhatsApp'),
    actions: {
      forms: compact([...requeueForms(way, `${path}/requeue`), edits && cancelForm(row, 'message', path)]),
    },
    sections: compact([
      ...whyItWaits(waitingAlerts(row, request)),
      edits && moveForm(row, path, request.cookies('zone')),
      whatHappened(messageMoments(row, request)),
      ...buildContent(row, template, request),
    ]),
    aside: facts(row, template, request),
  })
})

const requeue = post(
  'editor',
  '/teams/:team/whatsapp/:id/requeue',
  async (request, deps) => {
    const said = await requeueAsAsked(request, deps, WHATSAPP)
    return redirect(teamPath(request.team, 'whatsapp', request.params.id), said)
  },
  (request, deps) => requeueQuestion(request, deps, WHATSAPP, 'this message'),
)

export const whatsappMessagePages = [message, opened, requeue, ...scheduledActs(WHATSAPP, 'message')]
