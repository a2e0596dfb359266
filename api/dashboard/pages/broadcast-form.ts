/**
 * What the form of a broadcast's draft has changed of it. Promises: each rule is the API's own
 * (db/messages/broadcasts/fields.ts); a form that is sent back as it was changes nothing. Must not look anything up.
 */

import { isDeepStrictEqual } from 'node:util'
import { orRefusal, Refusal } from '../../../db/errors.ts'
import { type GivenFields, readChange, readNew } from '../../../db/messages/broadcasts/fields.ts'
import { keptOr, linesOf, pairOf, textOf, tickedOr } from '../drawn/lines.ts'
import { momentOf, zoneOf } from '../drawn/zone.ts'
import { type Draft, MOST_CONDITIONS, type Step, timeTyped } from './broadcast-fields.ts'

/** Lines of a field at most: far more than a draft may have of values, tags and variables. */
const MOST_LINES = 1_000
const MOST_VARIABLE_LINES = 20_000

function conditionsOf(form: URLSearchParams): object[] {
  return Array.from({ length: MOST_CONDITIONS }, (_, at) => {
    const property = textOf(form.get(`property.${at}`) ?? '')
    const op = form.get(`op.${at}`) ?? 'eq'
    const value = form.get(`value.${at}`) ?? ''
    if (property === '') return []
    if (op === 'exists' || op === 'missing') return [{ property, op }]
    return [
      { property, op, value: op === 'in' ? linesOf(value, 'value', MOST_LINES).map(textOf) : textOf(value) },
    ]
  }).flat()
}

const variablesOf = (typed: string): Record<string, string> =>
  Object.fromEntries(
    linesOf(typed, 'variables', MOST_VARIABLE_LINES).map((line) => pairOf(line, 'variables')),
  )

const NOTHING = {
  reply_to: '',
  exclude_topic_ids: [],
  conditions: [],
  variables: {},
  tags: [],
  rate_per_minute: null,
  send_at: null,
}

const SOME_ID = '019a0000-0000-7000-8000-000000000000'
/** What stands for a field that is at fault, while the others are looked at. */
const STAND_INS: Readonly<Record<string, unknown>> = {
  name: 'name',
  template_id: SOME_ID,
  from: 'a@example.com',
  subject: 'subject',
  topic_ids: [SOME_ID],
}

/** Reads a draft. @param faults what is known already. @throws Refusal bad_request naming all fields at fault. */
function readAll(given: Readonly<Record<string, unknown>>, faults: string[]): ReturnType<typeof readNew> {
  const fields = { ...given }
  for (const _ of Object.keys(given)) {
    const read = orRefusal(() => readNew(fields))
    if (!(read instanceof Refusal)) {
      if (faults.length === 0) return read
      break
    }
    const { message } = read
    faults.push(message)
    const words = (message.split(/ (?:must|are|is) /)[0] ?? '').split(/[ ,.[]/)
    const named = Object.keys(given).filter((name) => words.includes(name))
    for (const name of named) fields[name] = STAND_INS[name]
    if (named.length === 0) break
  }
  throw new Refusal('bad_request', faults.join('; '))
}

/** What the form says, all of it. @param isAimed whether it must say whom it goes to. */
function saidOf(form: URLSearchParams, draft: Draft | null, isAimed = true): GivenFields {
  const sent = (name: string): string => form.get(name) ?? ''
  const rate = sent('rate_per_minute').trim()
  const time = sent('send_at').trim()
  const topics = form.getAll('topic_ids')
  const zone = zoneOf(sent('send_at_zone'))
  const send_at =
    draft?.send_at && time === timeTyped(draft, zone)
      ? draft.send_at
      : time === ''
        ? ''
        : momentOf(time, zone)
  const given = {
    name: keptOr(sent('name'), draft?.name),
    template_id: sent('template_id') || undefined,
    from: keptOr(sent('from'), draft?.from_address),
    reply_to: keptOr(sent('reply_to'), draft?.reply_to) || undefined,
    subject: sent('subject'),
    topic_ids: topics.length > 0 ? tickedOr(topics, draft?.topic_ids) : STAND_INS.topic_ids,
    exclude_topic_ids: tickedOr(form.getAll('exclude_topic_ids'), draft?.exclude_topic_ids),
    where: conditionsOf(form),
    variables: variablesOf(sent('variables')),
    tags: linesOf(sent('tags'), 'tags', MOST_LINES).map(textOf),
    ...(rate === '' ? {} : { rate_per_minute: Number(rate) }),
    ...(send_at === '' ? {} : { send_at }),
  }
  const { fields } = readAll(given, isAimed && topics.length === 0 ? ['topics: choose at least one'] : [])
  return { ...NOTHING, ...fields }
}

/** @throws Refusal as the API's, of what has been written once this step is done. */
export function checkStep(form: URLSearchParams, draft: Draft | null, step: Step): void {
  saidOf(form, draft, step !== 'message')
}

type Aimed = Pick<Draft, 'topic_ids' | 'exclude_topic_ids' | 'conditions'>

/** Whom the form would go to, whatever else it says. @throws Refusal bad_request. */
export function aimOf(form: URLSearchParams): Aimed {
  const topic_ids = form.getAll('topic_ids')
  const where = conditionsOf(form)
  const exclude_topic_ids = form.getAll('exclude_topic_ids')
  const { conditions = [], ...fields } = readChange({
    exclude_topic_ids,
    where,
    ...(topic_ids.length > 0 ? { topic_ids } : {}),
  })
  return { topic_ids: fields.topic_ids ?? [], exclude_topic_ids: fields.exclude_topic_ids ?? [], conditions }
}

/** What the form has changed of a draft; of a new one all that it says. @throws Refusal as the API's. */
export function draftOf(form: URLSearchParams, draft: Draft | null): GivenFields {
  const said = saidOf(form, draft)
  if (!draft) return said
  const changed = Object.entries(said).filter(
    ([name, value]) => !isDeepStrictEqual(value, draft[name as keyof Draft]),
  )
  return Object.fromEntries(changed)
}
