/**
 * Reads the changes of a draft from the form of a step. Validation is the API's
 * (db/messages/broadcasts/fields.ts). A form that is submitted unchanged changes nothing.
 */

import { isDeepStrictEqual } from 'node:util'
import { type FieldError, REQUIRED, RequestError, resultOrError } from '../../../db/errors.ts'
import { type GivenFields, MAX_CONDITIONS, readChange } from '../../../db/messages/broadcasts/fields.ts'
import { keptOr, parseLine, parsePair, splitLines, splitListed, tickedOr } from '../components/lines.ts'
import { parseLocalTime, parseZone } from '../components/zone.ts'
import { isWithin } from '../server/form.ts'
import { type BroadcastDraft, type BroadcastStep, DEFAULT, timeTyped } from './broadcast-fields.ts'

/** Maximum number of lines per field, far above the limits of values, tags and variables. */
const MAX_FIELD_LINES = 1_000
const MAX_VARIABLE_LINES = 20_000

const readProperty = (form: URLSearchParams, row: number): string =>
  parseLine(form.get(`property.${row}`) ?? '')

/** Returns the rows with a condition. Empty rows are ignored. */
const listRows = (form: URLSearchParams): number[] =>
  Array.from({ length: MAX_CONDITIONS }, (_, row) => row).filter((row) => readProperty(form, row) !== '')

const readConditions = (form: URLSearchParams): object[] =>
  listRows(form).map((row) => {
    const property = readProperty(form, row)
    const op = form.get(`op.${row}`) ?? 'eq'
    const value = form.get(`value.${row}`) ?? ''
    if (op === 'exists' || op === 'missing') return { property, op }
    if (op !== 'in') return { property, op, value: parseLine(value) }
    return { property, op, value: splitListed(value, `value.${row}`, MAX_FIELD_LINES) }
  })

/** Maps the errors of conditions and variables to their fields. */
function byFields(form: URLSearchParams, errors: readonly FieldError[]): FieldError[] {
  const rows = listRows(form)
  const names = new Map<string, string>(
    rows.flatMap((row, at) =>
      ['property', 'op', 'value'].map((part) => [`where[${at}].${part}`, `${part}.${row}`] as const),
    ),
  )
  for (const name of form.keys())
    if (name.startsWith(DEFAULT)) names.set(`variables.${name.slice(DEFAULT.length)}`, name)
  return errors.map(({ field, problem }) => ({ field: names.get(field) ?? field, problem }))
}

const parseVariables = (typed: string): Record<string, string> =>
  Object.fromEntries(
    splitLines(typed, 'variables', MAX_VARIABLE_LINES).map((line) => parsePair(line, 'variables')),
  )

/** Returns the default values that have their own field. Empty fields are ignored. */
const readDefaults = (form: URLSearchParams): [name: string, value: string][] =>
  [...form]
    .filter(([name, value]) => name.startsWith(DEFAULT) && value.trim() !== '')
    .map(([name, value]) => [name.slice(DEFAULT.length), parseLine(value)])

/**
 * Validates a step.
 * @param known errors that were found before.
 * @throws RequestError with all invalid fields.
 */
function readAll(
  form: URLSearchParams,
  given: Readonly<Record<string, unknown>>,
  known: readonly FieldError[] = [],
): GivenFields {
  const read = resultOrError(() => readChange(given))
  if (!(read instanceof RequestError)) {
    if (known.length === 0) return read
    throw new RequestError('bad_request', byFields(form, known))
  }
  const all = [...known, ...read.fields]
  const others = Object.entries(given).filter(
    ([name]) => !read.fields.some(({ field }) => isWithin(field, name)),
  )
  if (others.length < Object.keys(given).length) return readAll(form, Object.fromEntries(others), all)
  throw all.length === 0 ? read : new RequestError('bad_request', byFields(form, all))
}

type ReadField = (name: string) => string

function readMessageStep(form: URLSearchParams, sent: ReadField, draft: BroadcastDraft | null): GivenFields {
  const template_id = sent('template_id')
  const given = {
    name: keptOr(sent('name'), draft?.name),
    ...(template_id === '' ? {} : { template_id }),
    from: keptOr(sent('from'), draft?.from_address),
    reply_to: keptOr(sent('reply_to'), draft?.reply_to) || undefined,
    subject: sent('subject'),
    variables: { ...parseVariables(sent('variables')), ...Object.fromEntries(readDefaults(form)) },
    tags: splitLines(sent('tags'), 'tags', MAX_FIELD_LINES).map(parseLine),
  }
  const faults = template_id === '' ? [{ field: 'template_id', problem: REQUIRED }] : []
  return { reply_to: '', variables: {}, tags: [], ...readAll(form, given, faults) }
}

/** @param isAimed true if a topic is required. */
function readAudienceStep(
  form: URLSearchParams,
  draft: BroadcastDraft | null,
  isAimed: boolean,
): GivenFields {
  const topics = form.getAll('topic_ids')
  const given = {
    ...(topics.length === 0 ? {} : { topic_ids: tickedOr(topics, draft?.topic_ids) }),
    exclude_topic_ids: tickedOr(form.getAll('exclude_topic_ids'), draft?.exclude_topic_ids),
    where: readConditions(form),
  }
  const none = isAimed && topics.length === 0
  const faults = none ? [{ field: 'topic_ids', problem: 'must have at least 1 topic' }] : []
  return { topic_ids: [], ...readAll(form, given, faults) }
}

function readStart(form: URLSearchParams, sent: ReadField, draft: BroadcastDraft | null): GivenFields {
  const rate = sent('rate_per_minute').trim()
  const time = sent('send_at').trim()
  const zone = parseZone(sent('send_at_zone'))
  const isKept = draft?.send_at && time === timeTyped(draft, zone)
  const send_at = isKept ? draft.send_at : time === '' ? '' : parseLocalTime(time, zone)
  const given = {
    ...(rate === '' ? {} : { rate_per_minute: Number(rate) }),
    ...(send_at === '' ? {} : { send_at }),
  }
  return { rate_per_minute: null, send_at: null, ...readAll(form, given) }
}

/** Reads the start time and the rate from a form. @throws RequestError bad_request. */
export function readWhen(
  form: URLSearchParams,
  draft: BroadcastDraft,
): Pick<BroadcastDraft, 'send_at' | 'rate_per_minute'> {
  const { send_at = null, rate_per_minute = null } = readStart(form, (name) => form.get(name) ?? '', draft)
  return { send_at, rate_per_minute }
}

type AudienceFields = Pick<BroadcastDraft, 'topic_ids' | 'exclude_topic_ids' | 'conditions'>

/** Reads the audience from a form, which can be incomplete. @throws RequestError bad_request. */
export function readAudience(form: URLSearchParams): AudienceFields {
  const topic_ids = form.getAll('topic_ids')
  const where = readConditions(form)
  const exclude_topic_ids = form.getAll('exclude_topic_ids')
  const { conditions = [], ...fields } = readAll(form, {
    exclude_topic_ids,
    where,
    ...(topic_ids.length > 0 ? { topic_ids } : {}),
  })
  return { topic_ids: fields.topic_ids ?? [], exclude_topic_ids: fields.exclude_topic_ids ?? [], conditions }
}

/**
 * Returns the fields of a draft that the form of a step changes, or all fields of a new draft.
 * @param isAimed true if the audience step requires a topic.
 * @throws RequestError like the API.
 */
export function draftChanges(
  form: URLSearchParams,
  draft: BroadcastDraft | null,
  step: BroadcastStep,
  isAimed = true,
): GivenFields {
  const sent = (name: string): string => form.get(name) ?? ''
  const said = {
    message: () => readMessageStep(form, sent, draft),
    audience: () => readAudienceStep(form, draft, isAimed),
    when: () => readStart(form, sent, draft),
  }[step]()
  if (!draft) return said
  const changed = Object.entries(said).filter(
    ([name, value]) => !isDeepStrictEqual(value, draft[name as keyof BroadcastDraft]),
  )
  return Object.fromEntries(changed)
}
