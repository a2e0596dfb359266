/** The page of a broadcast and its actions. */

import type { By } from '../../../db/accounts/audit/record.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { templateById } from '../../../db/content/templates/templates.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import {
  type Acting,
  assertDraft,
  changeSeenBroadcast,
  duplicateBroadcast,
  removeBroadcast,
  requireBroadcast,
} from '../../../db/messages/broadcasts/draft.ts'
import type { Seen } from '../../../db/messages/broadcasts/draft-version.ts'
import { broadcastHistory } from '../../../db/messages/broadcasts/history.ts'
import { sendToUnreached } from '../../../db/messages/broadcasts/resend.ts'
import { sendTest } from '../../../db/messages/broadcasts/send-test.ts'
import {
  assertState,
  cancelBroadcast,
  pauseBroadcast,
  resumeBroadcast,
  sendBroadcast,
  unscheduleBroadcast,
} from '../../../db/messages/broadcasts/start.ts'
import { type BroadcastView, broadcastView } from '../../../db/messages/broadcasts/view.ts'
import { bouncesOfBroadcast } from '../../../db/messages/emails/bounces.sql.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { bounceTable, MAX_BOUNCES } from '../components/bounces.ts'
import { partsTyped } from '../components/typed.ts'
import { asActor } from '../server/action.ts'
import { action, compact, get, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type Question, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { again, againQuestion } from './broadcast-again.ts'
import { draftParts, type StateParts, scheduledParts, seenIn, sendQuestion } from './broadcast-ahead.ts'
import { stepPath } from './broadcast-fields.ts'
import { draftChanges } from './broadcast-form.ts'
import { outcomes } from './broadcast-outcomes.ts'
import { broadcastPreviewPages, previewSections } from './broadcast-preview.ts'
import { rampSections } from './broadcast-ramp.ts'
import {
  actions,
  broadcastPath,
  broadcastSentence,
  facts,
  history,
  MAX_TESTS,
  pausedAlert,
  progress,
  STATE_QUESTIONS,
  testForm,
} from './broadcast-sections.ts'
import { type DraftPage, isBack, stepCounted, stepSent, stepShown, stepWanted } from './broadcast-steps.ts'
import { broadcastStateCell } from './broadcasts.ts'

const toActing = ({ team }: TeamRequest) => ({ team_id: team.id, domain: null })

async function stateParts(
  row: BroadcastRow,
  view: BroadcastView,
  request: TeamRequest<'id'>,
  deps: PageDeps,
): Promise<StateParts> {
  if (row.state === 'draft') return draftParts(row, request, deps)
  if (row.state === 'scheduled') return scheduledParts(row, view, request, deps)
  const sections = [...progress(view, request.now), outcomes(view, request)]
  return { sections, buttons: actions(view, request) }
}

const page = get('viewer', '/teams/:team/broadcasts/:id', async (request, deps) => {
  const { team, params } = request
  const row = await requireBroadcast(deps.database, team.id, params.id)
  const view = await broadcastView(deps.database, row)
  const topics = new Map((await topicsOfTeam(deps.database, team.id)).map(({ id, name }) => [id, name]))
  const template = (await templateById(deps.database, team.id, row.template_id))?.name ?? null
  const entries = await broadcastHistory(deps.database, row)
  const edits = team.role !== 'viewer'
  const { sections, buttons, lead, stepper } = await stateParts(row, view, request, deps)
  const ramp = await rampSections(row, view, request, deps)
  const previewed = await previewSections(row, request, deps)
  const isPreviewed = previewed.some(({ kind }) => kind === 'inbox')
  // Before the start it is an offer, and afterwards the reason for the pace.
  const isAhead = row.state === 'draft' || row.state === 'scheduled'
  return show({
    title: row.name,
    state: broadcastStateCell(row),
    lead: lead ?? broadcastSentence(view, entries, request.now),
    back: { href: teamPath(team, 'broadcasts'), label: 'Broadcasts' },
    actions: buttons,
    above: compact([stepper, pausedAlert(row, view, request)]),
    sections: compact([
      isAhead ? [...sections, ...ramp] : [...ramp, ...sections],
      bounceTable(await bouncesOfBroadcast(deps.database, row, { most: MAX_BOUNCES })),
      edits && testForm(request, row),
      history(entries, row, request.now),
    ]),
    aside: [...previewed, facts(view, { topics, template }, isPreviewed, request)],
  })
})

const writing = (request: TeamRequest, draft: BroadcastRow): DraftPage => ({
  title: draft.name,
  back: { href: broadcastPath(request), label: 'Draft' },
  action: broadcastPath(request, 'edit'),
  draft,
})

const edit = get('editor', '/teams/:team/broadcasts/:id/edit', async (request, deps) => {
  const row = await requireBroadcast(deps.database, request.team.id, request.params.id)
  return row.state === 'draft'
    ? stepShown(writing(request, row), request, deps)
    : redirect(broadcastPath(request))
})

const save = post('editor', '/teams/:team/broadcasts/:id/edit', async (request, deps) => {
  const row = await requireBroadcast(deps.database, request.team.id, request.params.id)
  const [step, next] = [stepSent(request), stepWanted(request)]
  if (next === step) return stepCounted(writing(request, row), request, deps)
  const fields = draftChanges(request.form, row, step, !isBack(step, next))
  const isChanged = Object.keys(fields).length > 0
  const seen = request.form.get('seen') ?? ''
  if (isChanged)
    await asActor(request, deps, (by) => changeSeenBroadcast(by, toActing(request), row.id, { fields, seen }))
  if (next) return redirect(stepPath(broadcastPath(request), next))
  return redirect(broadcastPath(request), isChanged ? 'The draft is saved.' : 'No changes to save.')
})

const remove = action('editor', '/teams/:team/broadcasts/:id/delete', async (by, request) => {
  const { name } = await removeBroadcast(by, toActing(request), request.params.id)
  return redirect(teamPath(request.team, 'broadcasts'), `The draft ${name} was deleted.`)
}).confirm(async ({ team, params }, { database }) => {
  const row = await requireBroadcast(database, team.id, params.id)
  assertDraft(row, 'deleted')
  return { question: `Delete the draft “${row.name}”?`, answer: 'Delete the draft', tone: 'danger' }
})

const duplicate = action('editor', '/teams/:team/broadcasts/:id/duplicate', async (by, request) => {
  const { id, name } = await duplicateBroadcast(by, toActing(request), request.params.id)
  return redirect(teamPath(request.team, 'broadcasts', id), `The draft ${name} was created.`)
})

const stateButton = (
  verb: string,
  done: string,
  change: (by: PageDeps & By, acting: Acting, id: string, seen: Seen) => Promise<BroadcastRow>,
) =>
  action('editor', `/teams/:team/broadcasts/:id/${verb}`, async (by, request) => {
    const row = await change(by, toActing(request), request.params.id, seenIn(request))
    return redirect(
      broadcastPath(request),
      `${row.name} ${row.state === 'scheduled' ? 'is scheduled' : done}.`,
    )
  })

const stateQuestion =
  (verb: keyof typeof STATE_QUESTIONS) =>
  async ({ team, params }: TeamRequest<'id'>, { database }: PageDeps): Promise<Question> => {
    const row = await requireBroadcast(database, team.id, params.id)
    assertState(row, verb)
    return STATE_QUESTIONS[verb](await broadcastView(database, row))
  }

/** Parses a list of addresses. @throws RequestError bad_request. */
function parseAddresses(typed: string): string[] {
  const to = partsTyped(typed, { field: 'to', between: /[,;\s]/, most: 1_000 })
  const odd = to.find((each) => parseMailbox(each) === null)
  if (odd !== undefined) throw invalidField('to', fill(TEXTS.notAddresses, { given: JSON.stringify(odd) }))
  if (to.length > 0 && to.length <= MAX_TESTS) return to
  throw invalidField('to', `must be 1 to ${MAX_TESTS} addresses`)
}

const test = action('editor', '/teams/:team/broadcasts/:id/test', async (by, request) => {
  const to = parseAddresses(request.form.get('to') ?? '')
  const contact = request.form.get('contact')?.trim() || undefined
  await sendTest(by, toActing(request), request.params.id, { to, contact })
  return redirect(broadcastPath(request), 'A test is on its way.')
})

/** Makes it a draft again, and shows the step to change. */
const unschedule = action('editor', '/teams/:team/broadcasts/:id/unschedule', async (by, request) => {
  const { name } = await unscheduleBroadcast(by, toActing(request), request.params.id)
  const path = broadcastPath(request)
  return request.query.get('next') === 'when'
    ? redirect(stepPath(path, 'when'), `${name} is a draft again. Set its start, then schedule it.`)
    : redirect(path, `${name} is a draft again.`)
})

export const broadcastPages = [
  again,
  page,
  edit,
  save,
  remove,
  duplicate,
  stateButton('send', 'is being sent', (by, acting, id, seen) =>
    sendBroadcast(by, acting, id, { seen }),
  ).confirm(sendQuestion),
  unschedule,
  stateButton('pause', 'is paused', pauseBroadcast).confirm(stateQuestion('pause')),
  stateButton('resume', 'is being sent', resumeBroadcast).confirm(stateQuestion('resume')),
  stateButton('cancel', 'is cancelled', cancelBroadcast).confirm(stateQuestion('cancel')),
  stateButton('again', 'is being sent', sendToUnreached).confirm(againQuestion),
  test,
  ...broadcastPreviewPages,
]
