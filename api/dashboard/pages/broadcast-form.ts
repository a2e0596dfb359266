/**
 * A broadcast's draft as a form: its fields filled with what is stored, and what the form sent as the API's body.
 * Promises: each rule is the API's own (db/messages/broadcasts/fields.ts). Must not look anything up.
 */

import { Refusal, settle } from '../../../db/errors.ts'
import type { BroadcastFields, Condition } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { type GivenFields, OPERATORS, readNew } from '../../../db/messages/broadcasts/fields.ts'
import type { Field } from '../drawn/section.ts'
import { namedLines, partsTyped } from '../drawn/typed.ts'
import { momentOf, typedOf, zoneOf } from '../drawn/zone.ts'

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

const OPERATOR_WORDS: Record<(typeof OPERATORS)[number], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  exists: 'is there',
  missing: 'is missing',
  contains: 'contains',
  gt: 'is greater than',
  lt: 'is less than',
}

/** A condition in words. */
export const conditionWords = ({ property, op, value }: Condition): string =>
  [property, OPERATOR_WORDS[op], Array.isArray(value) ? value.join(', ') : (value ?? '')].join(' ').trim()

function conditionFields(conditions: readonly Condition[]): Field[] {
  const rows = Math.min(MOST_CONDITIONS, conditions.length + FREE_CONDITIONS)
  return Array.from({ length: rows }, (_, at): Field[] => {
    const { property = '', op = 'eq', value = '' } = conditions[at] ?? {}
    const nth = at + 1
    const fields: Field[] = [
      { name: `property.${at}`, label: `Condition ${nth}: property`, type: 'text', value: property },
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
        label: `Condition ${nth}: value`,
        type: 'text',
        value: Array.isArray(value) ? value.join(', ') : value,
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
  options: topics.map(({ id, name: topic }) => ({
    value: id,
    label: `${topic} (${(subscribers.get(id) ?? 0).toLocaleString('en-US')})`,
    selected: chosen.includes(id),
  })),
})

const chosenOf = (choices: readonly Choice[], chosen: string | undefined) =>
  choices.map(({ id, name }) => ({ value: id, label: name, selected: id === chosen }))

/** The fields of a draft; of a new one without it. @param zone in which its time is typed. */
export const draftFields = (choices: Choices, draft: Draft | null, zone: string): Field[] => [
  {
    name: 'name',
    label: 'Name',
    type: 'text',
    required: true,
    value: draft?.name ?? '',
    hint: 'For yourselves: nobody else reads it.',
  },
  {
    name: 'template_id',
    label: 'Template',
    type: 'select',
    required: true,
    options: chosenOf(choices.templates, draft?.template_id),
  },
  { name: 'from', label: 'From', type: 'text', required: true, value: draft?.from_address ?? choices.from },
  { name: 'reply_to', label: 'Reply to (may be empty)', type: 'text', value: draft?.reply_to ?? '' },
  {
    name: 'subject',
    label: 'Subject',
    type: 'text',
    required: true,
    value: draft?.subject ?? '',
    hint: '{{name}} is filled with the contact’s property of that name.',
  },
  topicField('topic_ids', 'Topics: contacts of any of these', choices, draft?.topic_ids ?? []),
  topicField('exclude_topic_ids', 'But of none of these', choices, draft?.exclude_topic_ids ?? []),
  ...conditionFields(draft?.conditions ?? []),
  {
    name: 'variables',
    label: 'Defaults for variables',
    type: 'textarea',
    code: true,
    value: Object.entries(draft?.variables ?? {})
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    hint: 'One a line, such as name: friend. Used where a contact has no property of that name; without either the contact is skipped.',
  },
  { name: 'tags', label: 'Tags, separated by commas', type: 'text', value: (draft?.tags ?? []).join(', ') },
  {
    name: 'rate_per_minute',
    label: 'Emails a minute at most (may be empty)',
    type: 'number',
    value: draft?.rate_per_minute?.toString() ?? '',
  },
  {
    name: 'send_at',
    label: `Send at (${zone} time; empty: as soon as it is started)`,
    type: 'datetime-local',
    value: draft?.send_at ? typedOf(draft.send_at, zone) : '',
  },
  { name: 'send_at_zone', label: '', type: 'hidden', value: zone, own: true },
]

/** Far more than a draft may have of tags, of a condition's values and of variables. */
const MOST_PARTS = 1_000
const MOST_LINES = 20_000

/** @throws Refusal bad_request. */
const listOf = (typed: string | null, field: string): string[] =>
  partsTyped(typed ?? '', { field, between: /,/, most: MOST_PARTS })

/** @throws Refusal bad_request naming the line. */
const variablesOf = (typed: string | null): Record<string, string> =>
  Object.fromEntries(namedLines(typed ?? '', 'variables', MOST_LINES))

function conditionsOf(form: URLSearchParams): object[] {
  return Array.from({ length: MOST_CONDITIONS }, (_, at) => {
    const property = form.get(`property.${at}`)?.trim() ?? ''
    const op = form.get(`op.${at}`) ?? 'eq'
    const value = form.get(`value.${at}`) ?? ''
    if (property === '') return []
    if (op === 'exists' || op === 'missing') return [{ property, op }]
    return [{ property, op, value: op === 'in' ? listOf(value, 'value') : value }]
  }).flat()
}

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

/** What the form says, all of it. @throws Refusal as the API's. */
export function draftOf(form: URLSearchParams): GivenFields {
  const rate = form.get('rate_per_minute')?.trim() ?? ''
  const time = form.get('send_at')?.trim() ?? ''
  const topics = form.getAll('topic_ids')
  const isAimed = topics.length > 0
  const given = {
    name: form.get('name')?.trim(),
    template_id: form.get('template_id') || undefined,
    from: form.get('from')?.trim(),
    reply_to: form.get('reply_to')?.trim() || undefined,
    subject: form.get('subject'),
    topic_ids: isAimed ? topics : STAND_INS.topic_ids,
    exclude_topic_ids: form.getAll('exclude_topic_ids'),
    where: conditionsOf(form),
    variables: variablesOf(form.get('variables')),
    tags: listOf(form.get('tags'), 'tags'),
    ...(rate === '' ? {} : { rate_per_minute: Number(rate) }),
    ...(time === '' ? {} : { send_at: momentOf(time, zoneOf(form.get('send_at_zone') ?? '')) }),
  }
  const { fields } = readAll(given, isAimed ? [] : ['topics: choose at least one'])
  return { ...NOTHING, ...fields }
}
