/**
 * Edits a draft in three steps: message, audience and time. The buttons save a step (DECISIONS: Drafts in steps). The
 * script warns before a link leaves a changed one. The audience count is that of the form, saved or not.
 */

import { propertyNames, propertyValues } from '../../../db/audience/contacts/search.sql.ts'
import { countSubscribers } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { RequestError, resultOrError } from '../../../db/errors.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { countAudience, draftSlots } from '../../../db/messages/broadcasts/readiness.ts'
import { plural } from '../../../db/plural.ts'
import type { Field, Form, Section, Tile, View } from '../components/section.ts'
import { parseZone } from '../components/zone.ts'
import { buildForm, buildTable, compact, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { asSent, describeByLabels } from '../server/form.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { asTextTiles, contactsTile, NO_MATCH, startTiles, unfilledSection } from './broadcast-ahead.ts'
import {
  type BroadcastStep,
  buildStepper,
  type Choice,
  type Choices,
  draftFields,
  findOnlyTemplate,
  STEP_TITLES,
  STEPS,
  stepPath,
} from './broadcast-fields.ts'
import { readAudience, readWhen } from './broadcast-form.ts'
import { previewSections } from './broadcast-preview.ts'
import { suggestSenders } from './test-email.ts'

/** The draft being edited, with the path of its form and the titles of its pages. Null if it isn't stored yet. */
export type DraftPage = Pick<View, 'title' | 'back'> & { action: string; draft: BroadcastRow | null }

const isStep = (word: string | null): word is BroadcastStep => STEPS.some((step) => step === word)

async function loadChoices(
  step: BroadcastStep,
  team: { id: string },
  slots: readonly string[],
  { database }: PageDeps,
): Promise<Choices> {
  const topics = await topicsOfTeam(database, team.id)
  const ids = topics.map(({ id }) => id)
  const [from = ''] = await suggestSenders(database, team.id)
  return {
    templates: await templatesOfTeam(database, team.id),
    topics,
    subscribers: await countSubscribers(database, team.id, ids),
    ...(step === 'audience'
      ? {
          properties: await propertyNames(database, team.id),
          values: await propertyValues(database, team.id),
        }
      : { properties: [], values: [] }),
    slots,
    from,
  }
}

type Aim = ReturnType<typeof readAudience>

const NOBODY: Aim = { topic_ids: [], exclude_topic_ids: [], conditions: [] }

/** Reads the audience from a form, or returns the error with the labels of its fields. */
function aimSent(form: URLSearchParams, fields: readonly Field[]): Aim | RequestError {
  const aim = resultOrError(() => readAudience(form))
  return aim instanceof RequestError ? new RequestError(aim.code, describeByLabels(fields, aim)) : aim
}

/** Explains an audience of 0, if its topics or conditions are the cause. @returns a sentence to append, or ''. */
async function describeNone(
  aim: Aim,
  subscribers: Choices['subscribers'],
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<string> {
  if (aim.topic_ids.every((id) => !subscribers.get(id)))
    return `. No contact has ${aim.topic_ids.length === 1 ? 'the chosen topic' : 'any of the chosen topics'}.`
  if (aim.conditions.length === 0) return ''
  const { size } = await countAudience(database, { team_id: team.id, ...aim, conditions: [] })
  return size ? `. Without the conditions, ${plural(size, 'contact')} would match.` : ''
}

/** Counts the audience, or shows why it can't be counted. */
async function audienceTiles(
  aim: Aim | RequestError,
  subscribers: Choices['subscribers'],
  request: TeamRequest,
  deps: PageDeps,
) {
  const not = (detail: string): Tile[] => [{ label: 'Contacts', value: '–', detail }]
  if (aim instanceof RequestError) return not(`Not counted. ${aim.message}`)
  if (aim.topic_ids.length === 0) return not('Choose a topic.')
  const { size, as_text } = await countAudience(deps.database, { team_id: request.team.id, ...aim })
  const none = size === 0 && NO_MATCH + (await describeNone(aim, subscribers, request, deps))
  return [contactsTile(size, none || 'subscribed, not suppressed'), ...asTextTiles(as_text)]
}

/** Shows the start and the duration of the broadcast, or the error in the form. */
function timeTiles(
  draft: BroadcastRow,
  { sent, fields, audience }: Pick<Shown, 'sent' | 'fields' | 'audience'>,
  { team, cookies, now }: TeamRequest,
): Tile[] {
  const given = sent ? resultOrError(() => readWhen(sent, draft)) : draft
  if (given instanceof RequestError)
    return [{ label: 'Starts', value: '–', detail: describeByLabels(fields, given) }]
  const edit = stepPath(teamPath(team, 'broadcasts', draft.id), 'audience')
  return startTiles({ ...given, audience, edit }, parseZone(cookies('zone')), now)
}

type Shown = {
  draft: BroadcastRow | null
  sent: URLSearchParams | null
  fields: readonly Field[]
  choices: Choices
  /** The size of the stored audience in the last step. Null if it isn't counted. */
  audience: number | null
}

/** Builds the summary of a step. The script updates it after each change of the form. */
async function summary(
  step: BroadcastStep,
  { draft, sent, fields, choices, audience }: Shown,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section | undefined> {
  const section = (tiles: Tile[]): Section => ({ kind: 'tiles', id: 'audience', tiles })
  if (step === 'when' && draft) return section(timeTiles(draft, { sent, fields, audience }, request))
  if (step !== 'audience') return undefined
  const aim = sent ? aimSent(sent, fields) : (draft ?? NOBODY)
  return section(await audienceTiles(aim, choices.subscribers, request, deps))
}

/** Returns the buttons of a step, with the next step first. */
function buildButtons(step: BroadcastStep): Pick<Form, 'submit' | 'next' | 'others'> {
  const at = STEPS.indexOf(step)
  const [before, after] = [STEPS[at - 1], STEPS[at + 1]]
  const main = after ? { next: after, label: 'Continue' } : { next: 'save', label: 'Continue to review' }
  const others = compact([
    step === 'message' && { next: 'save', label: 'Save the draft' },
    step === 'audience' && { next: step, label: 'Count', counts: true },
    step === 'when' && { next: step, label: 'Calculate', counts: true },
    before && { next: before, label: 'Back' },
  ])
  return { submit: main.label, next: main.next, others }
}

const EMPTY_PREVIEW = buildTable([], () => ({}), {
  title: 'Preview',
  empty: 'Choose a template and continue to see the email.',
})

const templatePreview = ({ id, name }: Choice, { team }: TeamRequest): Section => ({
  kind: 'frame',
  title: `Preview of ${name}`,
  src: `${teamPath(team, 'templates', id, 'preview')}?of=published`,
})

/** Builds the right column, with the preview of the stored message. */
async function buildAside(
  { draft, chosen }: { draft: BroadcastRow | null; chosen: Choice | undefined },
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  if (!draft) return [chosen ? templatePreview(chosen, request) : EMPTY_PREVIEW]
  const of = { ...request, params: { ...request.params, id: draft.id } }
  return (await previewSections(draft, of, deps)).slice(0, 1)
}

const conditionOf = (name: string): string | undefined => /^(?:property|op|value)\.(\d+)$/.exec(name)?.[1]

/** Splits off the fields that few broadcasts need: the tags, and blank conditions after the first. */
function splitFields(fields: readonly Field[]) {
  const set = fields.filter(({ name, value }) => !name.startsWith('op.') && value)
  const shown = new Set(['0', ...set.map(({ name }) => conditionOf(name))])
  const isFurther = ({ name }: Field): boolean => {
    const condition = conditionOf(name)
    return condition === undefined ? name === 'tags' : !shown.has(condition)
  }
  return { usual: fields.filter((one) => !isFurther(one)), further: fields.filter(isFurther) }
}

/** Builds the page of a step. @param sent the submitted form, to show instead of the stored draft. */
async function stepView(
  { title, back, action, draft }: DraftPage,
  step: BroadcastStep,
  request: TeamRequest,
  deps: PageDeps,
  sent: URLSearchParams | null = null,
): Promise<View> {
  const slots = draft ? await draftSlots(deps.database, draft) : { given: [], unfilled: [] }
  const choices = await loadChoices(step, request.team, slots.given, deps)
  const path = draft && teamPath(request.team, 'broadcasts', draft.id)
  const stored = draftFields(choices, draft, parseZone(request.cookies('zone')))
  const fields = sent ? asSent(stored[step], sent) : stored[step]
  const { usual, further } = splitFields(fields)
  const audience =
    step === 'when' && draft
      ? (await countAudience(deps.database, { ...draft, team_id: request.team.id })).size
      : null
  return {
    title,
    lead: draft
      ? `${step === 'message' ? 'Continue saves' : 'Continue and Back save'} the step. Nothing is sent until you start the broadcast.`
      : 'It is saved as a draft when you continue. Nothing is sent until you start it.',
    back,
    above: [buildStepper(step, path, new Set(audience === 0 ? ['audience'] : []))],
    sections: compact<Section>([
      path && unfilledSection(slots.unfilled, step === 'message' ? undefined : stepPath(path, 'message')),
      buildForm(action, '', {
        ...{ title: STEP_TITLES[step], ...buildButtons(step) },
        result: await summary(step, { draft, sent, fields, choices, audience }, request, deps),
        fields: compact([
          usual,
          hidden('step', step, true),
          draft ? hidden('seen', draft.updated_at, true) : hidden('topic', request.query.get('topic') ?? ''),
        ]),
        further,
        unfold: step === 'audience' ? 'Add a condition' : undefined,
        open: further.some(({ name, value }) => name === 'tags' && value !== ''),
      }),
    ]),
    // The script counts after each change of the form, and uses only the count.
    aside:
      sent && request.byScript
        ? []
        : await buildAside({ draft, chosen: findOnlyTemplate(choices.templates) }, request, deps),
  }
}

/** Shows the requested step, or the submitted one after an error. An unknown one is the first. */
export async function stepShown(writing: DraftPage, request: TeamRequest, deps: PageDeps) {
  const typed = request.form.get('step')
  const asked = isStep(typed) ? typed : request.query.get('step')
  const step = writing.draft && isStep(asked) ? asked : 'message'
  return show(await stepView(writing, step, request, deps))
}

export const stepSent = ({ form }: Pick<TeamRequest, 'form'>): BroadcastStep => {
  const step = form.get('step')
  return isStep(step) ? step : 'message'
}

/** Returns the step that the clicked button leads to, or null for the draft's page. */
export const stepWanted = ({ form }: Pick<TeamRequest, 'form'>): BroadcastStep | null => {
  const next = form.get('next')
  return isStep(next) ? next : null
}

/** Shows the submitted step again with its audience counted, without saving it. */
export const stepCounted = async (writing: DraftPage, request: TeamRequest, deps: PageDeps) =>
  show(await stepView(writing, stepSent(request), request, deps, request.form))

/** True if the clicked button leads back. The step can then be incomplete. */
export const isBack = (from: BroadcastStep, next: BroadcastStep | null): boolean =>
  next !== null && STEPS.indexOf(next) < STEPS.indexOf(from)
