/**
 * A broadcast's draft as it is written, in three steps: what it says, whom it goes to, when (served/steps.ts).
 * Promises: the count beside the audience is of what the form says, saved or not.
 */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { propertyNames } from '../../../db/audience/contacts/search.sql.ts'
import { subscribersOf } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { orRefusal, Refusal } from '../../../db/errors.ts'
import type { ComparedAsText } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { countAudience } from '../../../db/messages/broadcasts/readiness.ts'
import { number } from '../drawn/cell.ts'
import type { Form, Section, Tile, View } from '../drawn/section.ts'
import { zoneOf } from '../drawn/zone.ts'
import type { PageDeps } from '../served/deps.ts'
import { wordGiven } from '../served/list.ts'
import { formOf, hidden, some } from '../served/made.ts'
import { type PageAnswer, show, type TeamRequest } from '../served/page.ts'
import { fieldsAt } from '../served/steps.ts'
import { type Choices, draftFields, STEPS, type Step } from './broadcast-fields.ts'
import { aimOf, checkStep } from './broadcast-form.ts'

const TITLES: Readonly<Record<Step, string>> = { message: 'Message', audience: 'Audience', when: 'When' }

/** A draft that is written: where its form is sent, what is stored of it, how its pages are called. */
export type Writing = Pick<View, 'title' | 'back'> & { action: string; draft: BroadcastRow | null }

const isStep = (word: string | null): word is Step => STEPS.some((step) => step === word)

/** What a draft's form can choose among. */
async function choicesOf(team: { id: string }, { database }: PageDeps): Promise<Choices> {
  const topics = await topicsOfTeam(database, team.id)
  const subscribers = await subscribersOf(
    database,
    team.id,
    topics.map(({ id }) => id),
  )
  const verified = (await domainsOfTeam(database, team.id)).find((domain) => domain.status === 'verified')
  return {
    templates: await templatesOfTeam(database, team.id),
    topics,
    subscribers,
    properties: await propertyNames(database, team.id),
    from: verified ? `hello@${verified.name}` : '',
  }
}

/** What number conditions compare as text. */
export const asTextTiles = (as_text: readonly ComparedAsText[]): Tile[] =>
  as_text.map(({ property, text, all }) => ({
    label: `“${property}” compared as text`,
    value: number(text).text,
    detail: `of ${number(all).text} values: these are not numbers`,
    tone: 'warn',
  }))

type Aim = ReturnType<typeof aimOf>

const NOBODY: Aim = { topic_ids: [], exclude_topic_ids: [], conditions: [] }

/** How many contacts it goes to as it stands; of what cannot be read the reason. */
async function audienceTiles(
  aim: Aim | Refusal,
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Tile[]> {
  const not = (detail: string): Tile[] => [{ label: 'Contacts', value: '–', detail }]
  if (aim instanceof Refusal) return not(`Not counted: ${aim.message}`)
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

/** The buttons of a step. */
function buttonsOf(step: Step, isStored: boolean): Pick<Form, 'submit' | 'next' | 'others'> {
  const at = STEPS.indexOf(step)
  const [before, after] = [STEPS[at - 1], STEPS[at + 1]]
  const save = { next: 'save', label: 'Save the draft' }
  const on = after && { next: after, label: 'Continue' }
  const main = isStored || !on ? save : on
  const others = some([
    on && main !== on && on,
    step === 'audience' && { next: 'audience', label: 'Count', counts: true },
    before && { next: before, label: 'Back' },
  ])
  return { submit: main.label, next: main.next, others }
}

/** A step as its page shows it. @param sent what the form says so far; absent: what is stored. @param seen when. */
async function stepView(
  { title, back, action, draft }: Writing,
  step: Step,
  request: TeamRequest,
  deps: PageDeps,
  { sent, seen }: { sent: URLSearchParams | null; seen: string | undefined },
): Promise<View> {
  const stored = draftFields(await choicesOf(request.team, deps), draft, zoneOf(request.cookies('zone')))
  const fields = fieldsAt(stored, step, sent)
  const aim = sent ? orRefusal(() => aimOf(sent)) : (draft ?? NOBODY)
  return {
    title,
    lead: 'Nothing is sent until you have looked at the draft and started it.',
    ...(back ? { back } : {}),
    sections: [
      formOf(
        action,
        '',
        some([fields, hidden('step', step, true), seen !== undefined && hidden('seen', seen, true)]),
        {
          title: `${STEPS.indexOf(step) + 1} of ${STEPS.length}: ${TITLES[step]}`,
          ...buttonsOf(step, draft !== null),
        },
      ),
    ],
    ...(step === 'audience' ? { aside: [await audienceSection(aim, request, deps)] } : {}),
  }
}

/** The step that is asked for; after a refusal the one that was sent, as it was typed. */
export async function stepShown(writing: Writing, request: TeamRequest, deps: PageDeps): Promise<PageAnswer> {
  const { form, query } = request
  const typed = form.get('step')
  const step = isStep(typed) ? typed : (wordGiven(query, 'step', STEPS) ?? 'message')
  const sent = isStep(typed) ? form : null
  return show(await stepView(writing, step, request, deps, { sent, seen: writing.draft?.updated_at }))
}

/** What a press in a step leads to; null: what was written is to be saved. @throws Refusal as the API's. */
export async function stepPressed(
  writing: Writing,
  request: TeamRequest,
  deps: PageDeps,
): Promise<PageAnswer | null> {
  const { form } = request
  const [from, next] = [form.get('step'), form.get('next')]
  if (!isStep(next)) return null
  if (isStep(from) && STEPS.indexOf(next) > STEPS.indexOf(from)) checkStep(form, writing.draft, from)
  const seen = form.get('seen') ?? undefined
  return show(await stepView(writing, next, request, deps, { sent: form, seen }))
}
