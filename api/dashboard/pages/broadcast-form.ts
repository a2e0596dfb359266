/**
 * A broadcast's draft as a form: its fields filled with what is stored, and what the form has changed of it.
 * Promises: each rule is the API's own (db/messages/broadcasts/fields.ts); a form that is sent back as it was changes
 * nothing. Must not look anything up.
 */

import { isDeepStrictEqual } from 'node:util'
import { Refusal, settle } from '../../../db/errors.ts'
import type { BroadcastFields, Condition } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { type GivenFields, OPERATORS, readNew } from '../../../db/messages/broadcasts/fields.ts'
import { keptOr, lineOf, linesOf, pairLine, pairOf, textOf, tickedOr } from '../drawn/lines.ts'
import type { Field } from '../drawn/section.ts'
import { momentOf, typedOf, zoneOf } from '../drawn/zone.ts'
import { hidden } from '../served/made.ts'

type Choice = { id: string; name: string }

/** What a form can choose among. `subscribers` by topic. */
export type Choices = {
  templates: readonly Choice[]
  topics: readonly Choice[]
  subscribers: ReadonlyMap<string, number>
  from: string
}

/** What the fields of a form show: a draft's, or nothing yet. */
export type Draft = Omit<BroadcastFields, 'headers'>

const MOST_CONDITIONS = 10
const FREE_CONDITIONS = 2
/** Lines of a field at most: far more than a draft may have of values, tags and variables. */
const MOST_LINES = 1_000
const MOST_VARIABLE_LINES = 20_000

const OPERATOR_WORDS: Record<(typeof OPERATORS)[number], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  exists: 'exists',
  missing: 'does not exist',
  contains: 'contains',
  gt: 'is greater than',
  lt: 'is less than',
}

/** The value of a condition as it is typed: the values of an `in` are one a line. */
const valueTyped = (value: Condition['value'] = ''): string =>
  Array.isArray(value) ? value.map(lineOf).join('\n') : value === '' ? '' : lineOf(value)

/** A condition in words. */
export const conditionWords = ({ property, op, value }: Condition): string =>
  [property, OPERATOR_WORDS[op], Array.isArray(value) ? value.join(', ') : (value ?? '')].join(' ').trim()

function conditionFields(conditions: readonly Condition[]): Field[] {
  const rows = Math.min(MOST_CONDITIONS, conditions.length + FREE_CONDITIONS)
  return Array.from({ length: rows }, (_, at): Field[] => {
    const { property = '', op = 'eq', value = '' } = conditions[at] ?? {}
    const nth = at + 1
    const fields: Field[] = [
      {
        name: `property.${at}`,
        label: `Condition ${nth}: property`,
        type: 'text',
        value: property === '' ? '' : lineOf(property),
      },
      {
        name: `op.${at}`,
        label: `Condition ${nth}: how it compares`,
        type: 'select',
        options: OPERATORS.map((each) => ({
          value: each,
          label: OPERATOR_WORDS[each],
          selected: each === op,
        })),
      },
      {
        name: `value.${at}`,
        label: `Condition ${nth}: value (several: one per line)`,
        type: 'textarea',
        rows: Array.isArray(value) ? Math.min(8, value.length + 1) : 1,
        value: valueTyped(value),
      },
    ]
    return fields.map((field) => ({ ...field, beside: true }))
  }).flat()
}

const topicField = (
  name: string,
  label: string,
  { topics, subscribers }: Choices,
  chosen: readonly string[],
): Field => ({
  name,
  label,
  type: 'checks',
  options: [
    ...topics.map(({ id, name: topic }) => ({
      value: id,
      label: `${topic} (${(subscribers.get(id) ?? 0).toLocaleString('en-US')})`,
      selected: chosen.includes(id),
    })),
    // Saving the rest must not change whom it goes to.
    ...goneOf(topics, chosen).map((id) => ({
      value: id,
      label: `a deleted topic (${id})`,
      selected: true,
    })),
  ],
})

/** What is chosen and is no choice any more. */
const goneOf = (choices: readonly Choice[], chosen: readonly string[]): string[] =>
  chosen.filter((each) => choices.every(({ id }) => id !== each))

const chosenOf = (choices: readonly Choice[], chosen: string | undefined) => [
  ...choices.map(({ id, name }) => ({ value: id, label: name, selected: id === chosen })),
  ...goneOf(choices, chosen === undefined ? [] : [chosen]).map((id) => ({
    value: id,
    label: `a deleted template (${id})`,
    selected: true,
  })),
]

/** The fields of a draft; of a new one without it. @param zone in which its time is typed. */
export const draftFields = (choices: Choices, draft: Draft | null, zone: string): Field[] => [
  {
    name: 'name',
    label: 'Name',
    type: 'text',
    required: true,
    value: draft?.name ?? '',
    hint: 'Only your team sees it.',
  },
  {
    name: 'template_id',
    label: 'Template',
    type: 'select',
    required: true,
    options: chosenOf(choices.templates, draft?.template_id),
  },
  { name: 'from', label: 'From', type: 'text', required: true, value: draft?.from_address ?? choices.from },
  { name: 'reply_to', label: 'Reply to (optional)', type: 'text', value: draft?.reply_to ?? '' },
  {
    name: 'subject',
    label: 'Subject',
    type: 'text',
    required: true,
    value: draft?.subject ?? '',
    hint: '{{name}} is filled with the contact’s property of that name.',
  },
  topicField('topic_ids', 'Topics: contacts in any of these', choices, draft?.topic_ids ?? []),
  topicField('exclude_topic_ids', 'Except contacts in any of these', choices, draft?.exclude_topic_ids ?? []),
  ...conditionFields(draft?.conditions ?? []),
  {
    name: 'variables',
    label: 'Default values of variables',
    type: 'textarea',
    code: true,
    value: Object.entries(draft?.variables ?? {})
      .map(pairLine)
      .join('\n'),
    hint: 'One per line, such as name: friend. Used where a contact has no property of that name; a contact with neither is skipped.',
  },
  {
    name: 'tags',
    label: 'Tags',
    type: 'textarea',
    rows: Math.min(8, (draft?.tags.length ?? 0) + 1),
    value: (draft?.tags ?? []).map(lineOf).join('\n'),
    hint: 'One per line.',
  },
  {
    name: 'rate_per_minute',
    label: 'Emails per minute at most (optional)',
    type: 'number',
    value: draft?.rate_per_minute?.toString() ?? '',
  },
  {
    name: 'send_at',
    label: `Send at (${zone} time; empty: as soon as it is started)`,
    type: 'datetime-local',
    value: timeTyped(draft, zone),
  },
  hidden('send_at_zone', zone, true),
]

/** The time of a draft as its field holds it: to the minute. */
const timeTyped = (draft: Draft | null, zone: string): string =>
  draft?.send_at ? typedOf(draft.send_at, zone) : ''

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
    const read = settle(() => readNew(fields))
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

/** What the form says, all of it. */
function saidOf(form: URLSearchParams, draft: Draft | null): GivenFields {
  const sent = (name: string): string => form.get(name) ?? ''
  const rate = sent('rate_per_minute').trim()
  const time = sent('send_at').trim()
  const topics = form.getAll('topic_ids')
  const isAimed = topics.length > 0
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
    topic_ids: isAimed ? tickedOr(topics, draft?.topic_ids) : STAND_INS.topic_ids,
    exclude_topic_ids: tickedOr(form.getAll('exclude_topic_ids'), draft?.exclude_topic_ids),
    where: conditionsOf(form),
    variables: variablesOf(sent('variables')),
    tags: linesOf(sent('tags'), 'tags', MOST_LINES).map(textOf),
    ...(rate === '' ? {} : { rate_per_minute: Number(rate) }),
    ...(send_at === '' ? {} : { send_at }),
  }
  const { fields } = readAll(given, isAimed ? [] : ['topics: choose at least one'])
  return { ...NOTHING, ...fields }
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
