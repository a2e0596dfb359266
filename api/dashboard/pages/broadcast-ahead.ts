/** Shows the audience, duration and problems of a draft or scheduled broadcast. */

import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import type { ComparedAsText } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { Blocker } from '../../../db/messages/broadcasts/blockers.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { domainOf, requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { assertSameDraft, type Seen } from '../../../db/messages/broadcasts/draft-version.ts'
import { checkReadiness, type Readiness } from '../../../db/messages/broadcasts/readiness.ts'
import { assertState } from '../../../db/messages/broadcasts/start.ts'
import type { BroadcastView } from '../../../db/messages/broadcasts/view.ts'
import { startWarnings } from '../../../db/messages/broadcasts/warnings.ts'
import { plural } from '../../../db/plural.ts'
import { duration, formatAge, headed, number } from '../components/cell.ts'
import type { Actions, Alert, Field, Link, Section, Tile } from '../components/section.ts'
import { momentWords, parseZone, plannedWords } from '../components/zone.ts'
import { buildAlerts, button, compact, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type Question, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { type BroadcastStep, buildStepper, stepPath } from './broadcast-fields.ts'
import { describeReach, loadSubscribers } from './broadcast-reach.ts'
import { actions, broadcastPath, listNames, splitSentence } from './broadcast-sections.ts'
import { lackingWords, slotWords } from './template-parts.ts'

/** Returns hidden fields that bind a form to the state shown. */
export const seenFields = ({ updated_at, template_version_id, audience }: Seen): Field[] => [
  hidden('seen', updated_at, true),
  hidden('version', template_version_id ?? '', true),
  hidden('audience', audience?.toString() ?? '', true),
]

/** Reads the state that the form was shown with. @throws RequestError bad_request for a form that isn't ours. */
export function seenIn({ form }: Pick<TeamRequest, 'form'>): Seen {
  const audience = form.get('audience') ?? (form.has('seen') ? 'unknown' : '')
  if (!/^\d*$/.test(audience)) throw new RequestError('bad_request', TEXTS.formOutOfDate)
  return {
    updated_at: form.get('seen') ?? '',
    template_version_id: form.get('version') || null,
    audience: audience === '' ? null : Number(audience),
  }
}

/** Warns about variables that no contact has a property for. @param href the page with their default values. */
export const unfilledSection = (slots: readonly string[], href?: string): Section[] =>
  buildAlerts([
    slots.length > 0 && {
      tone: 'warn',
      title: `No contact has the ${slots.length === 1 ? 'property' : 'properties'} ${slotWords(slots)}`,
      text: 'Used in the message. Without default values, all contacts are skipped.',
      link: href === undefined ? undefined : { href, label: 'Set default values' },
    },
  ])

/** Shows the values that number conditions compare as text. */
export const asTextTiles = (as_text: readonly ComparedAsText[]): Tile[] =>
  as_text.map(({ property, text, all }) => ({
    label: `“${property}” compared as text`,
    value: number(text).text,
    detail: `of ${plural(all, 'value')} ${text === 1 ? 'isn’t a number' : 'aren’t numbers'}`,
    tone: 'warn',
  }))

type Plan = Pick<BroadcastRow, 'send_at' | 'rate_per_minute'> & { audience: number | null; edit?: string }

function lengthTiles({ rate_per_minute: rate, audience }: Plan): Tile[] {
  if (rate === null || audience === null || audience === 0) return []
  const detail = `at ${plural(rate, 'email')} a minute`
  return [{ label: 'Takes about', value: duration(Math.max(60, (audience / rate) * 60), Math.round), detail }]
}

/** The sentence below a count of 0 in the steps. */
export const NO_MATCH = 'match, so no one would receive it'

export const contactsTile = (audience: number | null, detail?: string, href?: string): Tile => ({
  label: 'Contacts',
  value: audience === null ? 'not counted' : number(audience).text,
  ...(audience === 0 && { tone: 'bad', href }),
  detail: audience === null ? 'counting took too long' : detail,
})

function startTile(send_at: string | null, zone: string, now: Date): Tile {
  if (send_at === null) return { label: 'Starts', value: 'at once', detail: 'after you confirm the review' }
  const label = new Date(send_at) < now ? 'Due' : 'Starts'
  return { label, value: formatAge(send_at, now), detail: plannedWords(send_at, zone) }
}

/** Shows when a draft starts, to how many contacts, and how long it takes. */
export const startTiles = (plan: Plan, zone: string, now: Date): Tile[] => [
  startTile(plan.send_at, zone, now),
  contactsTile(plan.audience, plan.audience === 0 ? NO_MATCH : undefined, plan.edit),
  ...lengthTiles(plan),
]

const isAllSkipped = ({ audience, lacking }: Readiness): boolean =>
  audience !== null && audience > 0 && lacking >= audience

/** Returns the link to a step, for those who can edit it. Only drafts can be edited. */
function editLink(
  step: 'message' | 'audience',
  row: BroadcastRow,
  request: TeamRequest<'id'>,
): Link | undefined {
  if (row.state !== 'draft' || request.team.role === 'viewer') return undefined
  const label = step === 'message' ? 'Edit message' : 'Edit audience'
  return { href: stepPath(broadcastPath(request), step), label }
}

/** Returns the link to the page that removes a blocker. */
function findRemedy(
  { kind, edit }: Blocker,
  row: BroadcastRow,
  request: TeamRequest<'id'>,
): Link | undefined {
  const { team } = request
  if (kind === 'from_domain_not_verified')
    return { href: teamPath(team, 'domains'), label: 'Show the domains' }
  if (kind === 'quota_exceeded') return { href: teamPath(team), label: 'Show the quota' }
  return edit && editLink(edit, row, request)
}

/** Explains why all contacts would be skipped, with the next step for editors. The tiles of a draft have the count. */
function describeSkips(ready: Readiness, { state }: BroadcastRow, { team }: TeamRequest): string {
  const count = ready.audience ?? 0
  const matching = `${plural(count, 'contact')} ${count === 1 ? 'matches' : 'match'} now.`
  const cause = `${state === 'draft' ? '' : `${matching} `}${lackingWords(ready.slots, ready.unfilled)}`
  if (team.role === 'viewer') return cause
  return `${cause} ${state === 'draft' ? 'Set' : 'Go back to the draft to set'} default values.`
}

/** Builds the alerts of all problems that keep a broadcast from being sent, each with its remedy. */
function blockerAlerts(row: BroadcastRow, ready: Readiness, request: TeamRequest<'id'>): Alert[] {
  const blockers = ready.missing.map((blocker): Alert => {
    return { tone: 'bad', title: headed(blocker.words), link: findRemedy(blocker, row, request) }
  })
  return compact<Alert>([
    ...blockers,
    isAllSkipped(ready) && {
      tone: 'bad',
      title: 'Every contact would be skipped',
      text: describeSkips(ready, row, request),
      link: editLink('message', row, request),
    },
  ])
}

function audienceTiles(
  row: BroadcastRow,
  { ready, subscribers }: Omit<Ahead, 'warnings'>,
  { cookies, now }: TeamRequest,
): Tile[] {
  const { audience, lacking, slots, as_text } = ready
  const isScheduled = row.state === 'scheduled'
  return compact<Tile>([
    // The sentence about a scheduled one has its time.
    !isScheduled && row.send_at !== null && startTile(row.send_at, parseZone(cookies('zone')), now),
    isAllSkipped(ready)
      ? !isScheduled &&
        contactsTile(
          0,
          `of ${plural(audience ?? 0, 'contact')} that ${audience === 1 ? 'matches' : 'match'} now would receive it`,
        )
      : contactsTile(audience, describeReach(ready, subscribers, isScheduled)),
    // If all contacts are skipped, the alert has the variables.
    lacking > 0 &&
      !isAllSkipped(ready) && {
        label: 'Missing a variable',
        value: number(lacking).text,
        detail: `Skipped: no value for ${slots.length > 1 ? 'one of ' : ''}${slotWords(slots)}`,
        tone: 'warn',
      },
    ...lengthTiles({ ...row, audience: isAllSkipped(ready) ? 0 : audience }),
    ...asTextTiles(as_text),
  ])
}

type Ahead = Awaited<ReturnType<typeof readAhead>>

/** Builds the sections about the current audience and problems, with blockers first. */
function aheadSections(row: BroadcastRow, ahead: Ahead, request: TeamRequest<'id'>): Section[] {
  const { ready, warnings } = ahead
  const isVerified = ready.missing.every(({ kind }) => kind !== 'from_domain_not_verified')
  const domain = isVerified
    ? { href: teamPath(request.team, 'domains', domainOf(row.from_address)), label: 'Show the domain' }
    : undefined
  const tiles = audienceTiles(row, ahead, request)
  const advice = warnings.map((words): Alert => ({ tone: 'warn', ...splitSentence(words), link: domain }))
  return compact<Section>([
    buildAlerts(blockerAlerts(row, ready, request), { title: 'Before it can start' }),
    tiles.length > 0 && { kind: 'tiles', title: row.state === 'scheduled' ? 'Forecast' : 'Audience', tiles },
    // If all contacts are skipped, the alert above has the variables.
    !isAllSkipped(ready) && unfilledSection(ready.unfilled, editLink('message', row, request)?.href),
    buildAlerts(advice, { title: 'Recommended' }),
  ])
}

async function readAhead(row: BroadcastRow, deps: PageDeps) {
  const [ready, warnings, subscribers] = await Promise.all([
    checkReadiness(deps.database, row, deps.publicUrl),
    startWarnings(deps.database, row, deps),
    loadSubscribers(row, deps),
  ])
  return { ready, warnings, subscribers }
}

/** True if a problem keeps a broadcast from being sent, or all contacts would be skipped. */
const isBlocked = (ready: Readiness): boolean => ready.missing.length > 0 || isAllSkipped(ready)

/** Describes when a scheduled broadcast starts, or why it can't. */
function describeStart(row: BroadcastRow, { ready }: Ahead, { cookies, now }: TeamRequest): string {
  const at = row.send_at ?? now.toISOString()
  const words = plannedWords(at, parseZone(cookies('zone')))
  if (isAllSkipped(ready)) return `Scheduled for ${words}.`
  if (ready.missing.length > 0) return `Scheduled for ${words}. If nothing changes by then, it is paused.`
  return `Starts ${formatAge(at, now)} (${words}).`
}

/** The parts of a page that depend on the state. `lead` is the sentence about a broadcast that hasn't started. */
export type StateParts = { sections: Section[]; buttons: Actions; lead?: string; stepper?: Section }

export async function scheduledParts(
  row: BroadcastRow,
  view: BroadcastView,
  request: TeamRequest<'id'>,
  deps: PageDeps,
): Promise<StateParts> {
  const ahead = await readAhead(row, deps)
  return {
    sections: aheadSections(row, ahead, request),
    lead: describeStart(row, ahead, request),
    buttons: actions(view, request, isBlocked(ahead.ready)),
  }
}

const startLabel = ({ send_at }: BroadcastRow): string => (send_at === null ? 'Send now' : 'Schedule')

/** Returns the question before a draft starts, with the audience that its page counted. */
export async function sendQuestion(request: TeamRequest<'id'>, { database }: PageDeps): Promise<Question> {
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  const seen = seenIn(request)
  assertState(row, 'start')
  assertSameDraft(row, seen)
  const { audience: count } = seen
  const audience = count === null ? 'all matching contacts' : plural(count, 'contact')
  const names = new Map((await topicsOfTeam(database, request.team.id)).map(({ id, name }) => [id, name]))
  const recipients = `to ${audience} of ${listNames(row.topic_ids, names)}`
  const time = row.send_at && momentWords(row.send_at, parseZone(request.cookies('zone')))
  return {
    question: time
      ? `Schedule “${row.name}” for ${time}? It goes ${recipients}.`
      : `Send “${row.name}” ${recipients}?`,
    answer: startLabel(row),
  }
}

const stepsToEdit = (ready: Readiness) =>
  new Set(compact([...ready.missing.map(({ edit }) => edit), isAllSkipped(ready) && 'message']))

function buildButtons(row: BroadcastRow, ready: Readiness, request: TeamRequest): Actions {
  // A draft that can't start yet has no black button to start it.
  const start = button(broadcastPath(request, 'send'), startLabel(row), {
    tone: isBlocked(ready) ? 'quiet' : undefined,
    fields: seenFields({ ...row, template_version_id: ready.version_id, audience: ready.audience }),
  })
  const remove = button(broadcastPath(request, 'delete'), 'Delete the draft', { tone: 'danger' })
  const edits = stepsToEdit(ready)
  const main = edits.has('audience') ? 'audience' : edits.has('message') ? 'message' : undefined
  const editing = (step: BroadcastStep, label: string) => ({
    href: stepPath(broadcastPath(request), step),
    label,
    main: step === main,
  })
  const isAimed = row.topic_ids.length > 0
  const links = [
    editing('message', 'Edit message'),
    editing('audience', isAimed ? 'Edit audience' : 'Choose the audience'),
    editing('when', 'Edit time'),
  ]
  return { links, forms: compact([isAimed && start, remove]) }
}

export async function draftParts(
  row: BroadcastRow,
  request: TeamRequest,
  deps: PageDeps,
): Promise<StateParts> {
  const ahead = await readAhead(row, deps)
  const ready = isBlocked(ahead.ready) ? '' : ' Nothing is missing.'
  return {
    sections: aheadSections(row, ahead, request),
    lead: `Draft: nothing is sent until it is started.${ready}`,
    ...(request.team.role === 'viewer'
      ? { buttons: {} }
      : {
          buttons: buildButtons(row, ahead.ready, request),
          stepper: buildStepper('review', broadcastPath(request), stepsToEdit(ahead.ready)),
        }),
  }
}
