/** Shows the audience, duration and problems of a draft or scheduled broadcast. */

import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import type { ComparedAsText } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import type { Seen } from '../../../db/messages/broadcasts/draft-version.ts'
import { checkReadiness, type Readiness } from '../../../db/messages/broadcasts/readiness.ts'
import { startWarnings } from '../../../db/messages/broadcasts/warnings.ts'
import { duration, headed, number, plural, time } from '../components/cell.ts'
import type { Actions, Alert, Field, Section, Tile } from '../components/section.ts'
import { momentWords, parseZone } from '../components/zone.ts'
import { buildAlerts, button, compact, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import type { Question, TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { type BroadcastStep, stepPath } from './broadcast-fields.ts'
import { broadcastPath, listNames } from './broadcast-sections.ts'
import { slotWords } from './template-parts.ts'

/** Returns hidden fields that bind a form to the state shown. */
export const seenFields = ({ updated_at, template_version_id, audience }: Seen): Field[] => [
  hidden('seen', updated_at, true),
  hidden('version', template_version_id ?? '', true),
  hidden('audience', audience?.toString() ?? '', true),
]

/**
 * Reads the state that the form was shown with.
 * @throws RequestError bad_request for a form that isn't ours.
 */
export function seenIn({ form }: Pick<TeamRequest, 'form'>): Seen {
  const audience = form.get('audience') ?? (form.has('seen') ? 'unknown' : '')
  if (!/^\d*$/.test(audience)) throw new RequestError('bad_request', TEXTS.formOutOfDate)
  return {
    updated_at: form.get('seen') ?? '',
    template_version_id: form.get('version') || null,
    audience: audience === '' ? null : Number(audience),
  }
}

/** Warns about variables that no contact has a property for. */
export const unfilledSection = (slots: readonly string[]): Section[] =>
  buildAlerts([
    slots.length > 0 && {
      tone: 'warn',
      title: `No contact has the ${slots.length === 1 ? 'property' : 'properties'} ${slotWords(slots)}`,
      text: 'The message uses these variables. Without default values, all contacts are skipped.',
    },
  ])

/** Shows the values that number conditions compare as text. */
export const asTextTiles = (as_text: readonly ComparedAsText[]): Tile[] =>
  as_text.map(({ property, text, all }) => ({
    label: `“${property}” compared as text`,
    value: number(text).text,
    detail: `of ${plural(all, 'value')}: ${text === 1 ? 'this is not a number' : 'these are not numbers'}`,
    tone: 'warn',
  }))

function lengthTiles({ rate_per_minute: rate }: BroadcastRow, { audience }: Readiness): Tile[] {
  if (rate === null || audience === null || audience === 0) return []
  const detail = `at ${plural(rate, 'email')} a minute`
  return [{ label: 'Takes about', value: duration(Math.max(60, (audience / rate) * 60)), detail }]
}

/** Builds the sections about the current audience and problems. */
function aheadSections(
  row: BroadcastRow,
  { ready, warnings }: { ready: Readiness; warnings: readonly string[] },
  { cookies, now }: TeamRequest,
): Section[] {
  const { audience, lacking, slots, unfilled, as_text, missing } = ready
  const isScheduled = row.state === 'scheduled'
  const starts = row.send_at !== null && {
    label: new Date(row.send_at) < now ? 'Due' : 'Starts',
    value: time(row.send_at, now).age ?? '',
    detail: momentWords(row.send_at, parseZone(cookies('zone'))),
  }
  return compact<Section>([
    {
      kind: 'tiles',
      title: isScheduled ? 'Forecast' : 'Audience',
      tiles: compact([
        starts,
        {
          label: 'Contacts',
          value: audience === null ? 'very many' : number(audience).text,
          detail: isScheduled ? 'match now. The audience is chosen when it starts' : undefined,
        },
        {
          label: 'Missing a variable',
          value: number(lacking).text,
          detail:
            lacking > 0
              ? `Skipped: no value for ${slots.length > 1 ? 'one of ' : ''}${slotWords(slots)}`
              : undefined,
          tone: lacking > 0 ? 'warn' : undefined,
        },
        ...lengthTiles(row, ready),
        ...asTextTiles(as_text),
      ]),
    },
    unfilledSection(unfilled),
    {
      kind: 'alerts',
      title: 'Before it can start',
      calm: 'Nothing is missing.',
      alerts: compact<Alert>([
        ...missing.map(({ words }): Alert => ({ tone: 'bad', title: headed(words) })),
        audience !== null &&
          audience > 0 &&
          lacking >= audience && { tone: 'bad', title: 'Every contact would be skipped' },
      ]),
    },
    warnings.length > 0 && {
      kind: 'alerts',
      title: 'Recommended',
      calm: '',
      alerts: warnings.map((title): Alert => ({ tone: 'warn', title })),
    },
  ])
}

/** Reads the readiness of a broadcast and its warnings. */
async function readAhead(row: BroadcastRow, deps: PageDeps) {
  const [ready, warnings] = await Promise.all([
    checkReadiness(deps.database, row, deps.publicUrl),
    startWarnings(deps.database, row, deps),
  ])
  return { ready, warnings }
}

export const scheduledSections = async (
  row: BroadcastRow,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> => aheadSections(row, await readAhead(row, deps), request)

const startLabel = ({ send_at }: BroadcastRow): string => (send_at === null ? 'Send now' : 'Schedule')

/** Returns the question before a draft starts, with the audience that its page counted. */
export async function sendQuestion(request: TeamRequest<'id'>, { database }: PageDeps): Promise<Question> {
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  const { audience: count } = seenIn(request)
  const audience = count === null ? 'very many contacts' : plural(count, 'contact')
  const names = new Map((await topicsOfTeam(database, request.team.id)).map(({ id, name }) => [id, name]))
  const schedule =
    row.send_at === null ? '' : ` for ${momentWords(row.send_at, parseZone(request.cookies('zone')))}`
  const verb = schedule ? 'Schedule' : 'Send'
  return {
    question: `${verb} “${row.name}” to ${audience} of ${listNames(row.topic_ids, names)}${schedule}?`,
    answer: startLabel(row),
  }
}

function buildButtons(row: BroadcastRow, ready: Readiness, request: TeamRequest): Actions {
  // A draft that can't start yet has no black button to start it.
  const start = button(broadcastPath(request, 'send'), startLabel(row), {
    tone: ready.missing.length > 0 ? 'quiet' : undefined,
    fields: seenFields({ ...row, template_version_id: ready.version_id, audience: ready.audience }),
  })
  const remove = button(broadcastPath(request, 'delete'), 'Delete the draft', { tone: 'danger' })
  const edits = new Set(ready.missing.map(({ edit }) => edit))
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

/** Builds the sections and buttons of a draft. */
export async function draftParts(
  row: BroadcastRow,
  request: TeamRequest,
  deps: PageDeps,
): Promise<{ sections: Section[]; buttons: Actions }> {
  const ahead = await readAhead(row, deps)
  const { ready } = ahead
  const sections = aheadSections(row, ahead, request)
  if (request.team.role === 'viewer') return { sections, buttons: {} }
  return { sections, buttons: buildButtons(row, ready, request) }
}
