/**
 * Builds the form fields of a draft, for each step. Submitting them unchanged changes nothing.
 * broadcast-form.ts reads the submitted form.
 */

import type { BroadcastFields, Condition } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { MAX_CONDITIONS } from '../../../db/messages/broadcasts/fields.ts'
import { OPERATORS } from '../../../db/messages/broadcasts/operators.ts'
import { formatLine, pairLine } from '../components/lines.ts'
import type { Field } from '../components/section.ts'
import { toLocalTime } from '../components/zone.ts'
import { field, hidden } from '../server/builders.ts'

type Choice = { id: string; name: string }

/** The options of a form. `subscribers` are counts by topic. `properties` are names of contact properties. */
export type Choices = {
  templates: readonly Choice[]
  topics: readonly Choice[]
  subscribers: ReadonlyMap<string, number>
  properties: readonly string[]
  from: string
}

/** The fields of a draft that the form can edit. */
export type BroadcastDraft = Omit<BroadcastFields, 'headers'>

const FREE_CONDITIONS = 2
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

/** Formats the value of a condition for its field. `in` has one value per line. */
const valueTyped = (value: Condition['value'] = ''): string =>
  Array.isArray(value) ? value.map(formatLine).join('\n') : value === '' ? '' : formatLine(value)

export const conditionWords = ({ property, op, value }: Condition): string =>
  [property, OPERATOR_WORDS[op], Array.isArray(value) ? value.join(', ') : (value ?? '')].join(' ').trim()

function conditionFields(conditions: readonly Condition[], properties: readonly string[]): Field[] {
  const rows = Math.min(MAX_CONDITIONS, conditions.length + FREE_CONDITIONS)
  return Array.from({ length: rows }, (_, at): Field[] => {
    const { property = '', op = 'eq', value = '' } = conditions[at] ?? {}
    const nth = at + 1
    const fields: Field[] = [
      field(`property.${at}`, nth === 1 ? 'Property 1' : `And property ${nth}`, {
        value: property === '' ? '' : formatLine(property),
        offers: properties,
      }),
      field(`op.${at}`, `Comparison ${nth}`, {
        type: 'select',
        options: OPERATORS.map((each) => ({
          value: each,
          label: OPERATOR_WORDS[each],
          selected: each === op,
        })),
      }),
      field(`value.${at}`, `Value ${nth}`, {
        type: 'textarea',
        placeholder: 'One per line',
        rows: Array.isArray(value) ? Math.min(8, value.length + 1) : 1,
        value: valueTyped(value),
      }),
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
    // Keeps deleted topics, because saving other fields must not change the audience.
    ...missingIds(topics, chosen).map((id) => ({
      value: id,
      label: `a deleted topic (${id})`,
      selected: true,
    })),
  ],
})

/** Returns the chosen IDs that aren't among the choices. */
const missingIds = (choices: readonly Choice[], chosen: readonly string[]): string[] =>
  chosen.filter((each) => choices.every(({ id }) => id !== each))

const toOptions = (choices: readonly Choice[], chosen: string | undefined) => [
  ...choices.map(({ id, name }) => ({ value: id, label: name, selected: id === chosen })),
  ...missingIds(choices, chosen === undefined ? [] : [chosen]).map((id) => ({
    value: id,
    label: `a deleted template (${id})`,
    selected: true,
  })),
]

export const STEPS = ['message', 'audience', 'when'] as const
export type BroadcastStep = (typeof STEPS)[number]

/** Returns the path of a step of a draft. @param path the path of the draft's page. */
export const stepPath = (path: string, step: BroadcastStep): string =>
  `${path}/edit?${new URLSearchParams({ step })}`

const messageFields = ({ templates, from }: Choices, draft: BroadcastDraft | null): Field[] => [
  field('name', 'Name', { required: true, value: draft?.name ?? '', hint: 'Only your team sees it.' }),
  field('template_id', 'Template', {
    type: 'select',
    required: true,
    options: toOptions(templates, draft?.template_id),
  }),
  field('from', 'From', { required: true, value: draft?.from_address ?? from }),
  field('reply_to', 'Reply to (optional)', { value: draft?.reply_to ?? '' }),
  field('subject', 'Subject', {
    required: true,
    value: draft?.subject ?? '',
    hint: '{{name}} is filled with the contact’s property of that name.',
  }),
  field('variables', 'Default values of variables', {
    type: 'textarea',
    value: Object.entries(draft?.variables ?? {})
      .map(pairLine)
      .join('\n'),
    hint: 'One per line, such as name: friend. Used if a contact doesn’t have the property. Without a default, the contact is skipped.',
  }),
  field('tags', 'Tags', {
    type: 'textarea',
    rows: Math.min(8, (draft?.tags.length ?? 0) + 1),
    value: (draft?.tags ?? []).map(formatLine).join('\n'),
    hint: 'One per line.',
  }),
]

const audienceFields = (choices: Choices, draft: BroadcastDraft | null): Field[] => [
  topicField('topic_ids', 'Topics: contacts in any of these', choices, draft?.topic_ids ?? []),
  topicField('exclude_topic_ids', 'Except contacts in any of these', choices, draft?.exclude_topic_ids ?? []),
  ...conditionFields(draft?.conditions ?? [], choices.properties),
]

const whenFields = (draft: BroadcastDraft | null, zone: string): Field[] => [
  field('send_at', `Send at (${zone} time, empty to send on start)`, {
    type: 'datetime-local',
    value: timeTyped(draft, zone),
  }),
  field('rate_per_minute', 'Maximum emails per minute (optional)', {
    type: 'number',
    value: draft?.rate_per_minute?.toString() ?? '',
  }),
  hidden('send_at_zone', zone, true),
]

/**
 * Builds the fields of each step. Without a draft they are empty.
 * @param zone the time zone of its start time.
 */
export const draftFields = (
  choices: Choices,
  draft: BroadcastDraft | null,
  zone: string,
): Record<BroadcastStep, Field[]> => ({
  message: messageFields(choices, draft),
  audience: audienceFields(choices, draft),
  when: whenFields(draft, zone),
})

/** Formats the start time of a draft for its field, to the minute. */
export const timeTyped = (draft: BroadcastDraft | null, zone: string): string =>
  draft?.send_at ? toLocalTime(draft.send_at, zone) : ''
