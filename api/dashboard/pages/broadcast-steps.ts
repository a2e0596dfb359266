/**
 * A broadcast's draft as it is written, in three steps: what it says, whom it goes to, when. Promises: each step is
 * stored as it is left (DECISIONS: Drafts in steps); the count beside the audience is of what the form says, saved or
 * not; what the message asks for and no contact has is said from the first step on.
 */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { propertyNames } from '../../../db/audience/contacts/search.sql.ts'
import { subscribersOf } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { RequestError, resultOrError } from '../../../db/errors.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { countAudience, unfilledSlots } from '../../../db/messages/broadcasts/readiness.ts'
import { number } from '../components/cell.ts'
import type { Field, Form, Section, Tile, View } from '../components/section.ts'
import { zoneOf } from '../components/zone.ts'
import { compact, formOf, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { asSent, describeByLabels } from '../server/form.ts'
import { wordParam } from '../server/list.ts'
import { type PageAnswer, show, type TeamRequest, teamPath } from '../server/page.ts'
import { asTextTiles, unfilledSection } from './broadcast-ahead.ts'
import { type BroadcastStep, type Choices, draftFields, STEPS, stepPath } from './broadcast-fields.ts'
import { aimOf } from './broadcast-form.ts'
import { previewSections } from './broadcast-preview.ts'

const TITLES: Readonly<Record<BroadcastStep, string>> = {
  message: 'Message',
  audience: 'Audience',
  when: 'When',
}

/** A draft that is written: where its form is sent, what is stored of it, how its pages are called. */
export type Writing = Pick<View, 'title' | 'back'> & { action: string; draft: BroadcastRow | null }

const isStep = (word: string | null): word is BroadcastStep => STEPS.some((step) => step === word)

async function choicesOf(team: { id: string }, { database }: PageDeps): Promise<Choices> {
  const topics = await topicsOfTeam(database, team.id)
  const ids = topics.map(({ id }) => id)
  const verified = (await domainsOfTeam(database, team.id)).find((domain) => domain.status === 'verified')
  return {
    templates: await templatesOfTeam(database, team.id),
    topics,
    subscribers: await subscribersOf(database, team.id, ids),
    properties: await propertyNames(database, team.id),
    from: verified ? `hello@${verified.name}` : '',
  }
}

type Aim = ReturnType<typeof aimOf>

const NOBODY: Aim = { topic_ids: [], exclude_topic_ids: [], conditions: [] }

/** Whom a form aims at; of what cannot be read the reason, in the words of its fields. */
function aimSent(form: URLSearchParams, fields: readonly Field[]): Aim | RequestError {
  const aim = resultOrError(() => aimOf(form))
  return aim instanceof RequestError ? new RequestError(aim.code, describeByLabels(fields, aim)) : aim
}

/** How many contacts it goes to as it stands; of what cannot be read the reason. */
async function audienceTiles(
  aim: Aim | RequestError,
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Tile[]> {
  const not = (detail: string): Tile[] => [{ label: 'Contacts', value: '–', detail }]
  if (aim instanceof RequestError) return not(`Not counted. ${aim.message}`)
  if (aim.topic_ids.length === 0) return not('Choose a topic.')
  const { size, as_text } = await countAudience(database, { team_id: team.id, ...aim })
  const value = size === null ? 'very many' : number(size).text
  return [{ label: 'Contacts', value, detail: 'subscribed, not suppressed' }, ...asTextTiles(as_text)]
}

const audienceSection = async (...asked: Parameters<typeof audienceTiles>): Promise<Section> => ({
  kind: 'tiles',
  id: 'audience',
  title: 'Audience',
  tiles: await audienceTiles(...asked),
})

/** The buttons of a step: the next step first. */
function buttonsOf(step: BroadcastStep): Pick<Form, 'submit' | 'next' | 'others'> {
  const at = STEPS.indexOf(step)
  const [before, after] = [STEPS[at - 1], STEPS[at + 1]]
  const save = { next: 'save', label: 'Save the draft' }
  const on = after && { next: after, label: 'Continue' }
  const main = on || save
  const others = compact([
    on && (main === on ? save : on),
    step === 'audience' && { next: 'audience', label: 'Count', counts: true },
    before && { next: before, label: 'Back' },
  ])
  return { submit: main.label, next: main.next, others }
}

/** The steps, with links to those of a draft that is stored. */
const stepperOf = (step: BroadcastStep, draft: BroadcastRow | null, { team }: TeamRequest): Section => ({
  kind: 'stepper',
  id: 'steps',
  steps: STEPS.map((each) => ({
    label: TITLES[each],
    current: each === step,
    done: STEPS.indexOf(each) < STEPS.indexOf(step),
    href: draft && each !== step ? stepPath(teamPath(team, 'broadcasts', draft.id), each) : undefined,
  })),
})

/** What is beside a step's form: what the stored message looks like, or how many contacts there are. */
async function besideOf(
  step: BroadcastStep,
  { aim, draft }: { aim: Aim | RequestError; draft: BroadcastRow | null },
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  if (step === 'audience') return [await audienceSection(aim, request, deps)]
  if (step !== 'message' || !draft) return []
  const of = { ...request, params: { ...request.params, id: draft.id } }
  return (await previewSections(draft, of, deps)).slice(0, 1)
}

/** A step as its page shows it. @param sent what the form says so far; absent: what is stored. */
async function stepView(
  { title, back, action, draft }: Writing,
  step: BroadcastStep,
  request: TeamRequest,
  deps: PageDeps,
  sent: URLSearchParams | null = null,
): Promise<View> {
  const stored = draftFields(await choicesOf(request.team, deps), draft, zoneOf(request.cookies('zone')))
  const fields = sent ? asSent(stored[step], sent) : stored[step]
  const aim = sent ? aimSent(sent, fields) : (draft ?? NOBODY)
  return {
    title,
    lead: draft
      ? 'Each step is saved when you leave it. Nothing is sent until you have looked at the draft and started it.'
      : 'It is kept as a draft from the next step on. Nothing is sent until you have looked at it and started it.',
    back,
    above: [stepperOf(step, draft, request)],
    sections: compact<Section>([
      draft && unfilledSection(await unfilledSlots(deps.database, draft)),
      formOf(
        action,
        '',
        compact([fields, hidden('step', step, true), draft && hidden('seen', draft.updated_at, true)]),
        { title: TITLES[step], ...buttonsOf(step) },
      ),
    ]),
    aside: await besideOf(step, { aim, draft }, request, deps),
  }
}

/** The step that is asked for; after a refusal the one that was sent. */
export async function stepShown(writing: Writing, request: TeamRequest, deps: PageDeps): Promise<PageAnswer> {
  const typed = request.form.get('step')
  const asked = isStep(typed) ? typed : wordParam(request.query, 'step', STEPS)
  const step = (writing.draft && asked) || 'message'
  return show(await stepView(writing, step, request, deps))
}

export const stepSent = ({ form }: Pick<TeamRequest, 'form'>): BroadcastStep => {
  const step = form.get('step')
  return isStep(step) ? step : 'message'
}

/** The step that a press leads to; null: the draft itself. */
export const stepWanted = ({ form }: Pick<TeamRequest, 'form'>): BroadcastStep | null => {
  const next = form.get('next')
  return isStep(next) ? next : null
}

/** The same step with what its form says, not stored: whom it would go to is counted. */
export const stepCounted = async (
  writing: Writing,
  request: TeamRequest,
  deps: PageDeps,
): Promise<PageAnswer> => show(await stepView(writing, stepSent(request), request, deps, request.form))

/** Whether a press leads back: then a step need not be whole. */
export const isBack = (from: BroadcastStep, next: BroadcastStep | null): boolean =>
  next !== null && STEPS.indexOf(next) < STEPS.indexOf(from)
