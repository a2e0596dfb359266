/** Builds the form fields of a draft, for each step. broadcast-form.ts reads them. Unchanged, they change nothing. */

import type { PropertyValue } from '../../../db/audience/contacts/search.sql.ts'
import type { BroadcastFields, Condition } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { MAX_CONDITIONS } from '../../../db/messages/broadcasts/fields.ts'
import { OPERATORS } from '../../../db/messages/broadcasts/operators.ts'
import { UNSUBSCRIBE_SLOT } from '../../../db/validation/slots.ts'
import { formatLine, formatListed, pairLine } from '../components/lines.ts'
import type { Field, Section } from '../components/section.ts'
import { toLocalTime } from '../components/zone.ts'
import { buildOptions, compact, field, hidden } from '../server/builders.ts'

export type Choice = { id: string; name: string }
type TemplateChoice = Choice & { slots: readonly string[] }

/** `subscribers` are counts by topic. `properties` are names of contact properties, `values` their common values. */
export type Choices = {
  templates: readonly TemplateChoice[]
  topics: readonly Choice[]
  subscribers: ReadonlyMap<string, number>
  properties: readonly string[]
  values: readonly PropertyValue[]
  /** The variables of the message. */
  slots: readonly string[]
  from: string
}

/** The fields of a draft that the form can edit. */
export type BroadcastDraft = Omit<BroadcastFields, 'headers'>

const MIN_CONDITION_ROWS = 2
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
  Array.isArray(value) ? value.map(formatListed).join('\n') : value === '' ? '' : formatLine(value)

export const conditionWords = ({ property, op, value }: Condition): string =>
  [property, OPERATOR_WORDS[op], Array.isArray(value) ? value.join(', ') : (value ?? '')].join(' ').trim()

const CONDITIONS = {
  title: 'Conditions (optional)',
  hint: 'A contact must match all conditions. Separate the values of “is one of” with commas.',
}

const numbered = (label: string, at: number): string => (at === 0 ? label : `${label} ${at + 1}`)

/** Builds the field of a value. A stored list has one value per line. */
function valueField(at: number, value: Condition['value'], offers: Field['offers']): Field {
  const [name, label, typed] = [`value.${at}`, numbered('Value', at), valueTyped(value)]
  return Array.isArray(value)
    ? field(name, label, { type: 'textarea', rows: Math.min(8, value.length + 1), value: typed })
    : field(name, label, { value: typed, offers })
}

function conditionFields(conditions: readonly Condition[], { properties, values }: Choices): Field[] {
  const names = properties.map((name) => ({ value: formatLine(name) }))
  const common = values.map(({ name, value }) => ({ value: formatLine(value), label: name }))
  // The last row is empty.
  const rows = Math.min(MAX_CONDITIONS, Math.max(MIN_CONDITION_ROWS, conditions.length + 1))
  return Array.from({ length: rows }, (_, at): Field[] => {
    const { property = '', op = 'eq', value } = conditions[at] ?? {}
    const fields: Field[] = [
      field(`property.${at}`, numbered('Property', at), {
        value: property === '' ? '' : formatLine(property),
        offers: names,
        group: at === 0 ? CONDITIONS : undefined,
      }),
      field(`op.${at}`, numbered('Comparison', at), {
        type: 'select',
        options: buildOptions(OPERATORS, [op], (each) => OPERATOR_WORDS[each]),
      }),
      valueField(at, value, common),
    ]
    return fields.map((field) => ({ ...field, beside: true }))
  }).flat()
}

/** Builds options. Keeps chosen objects that were deleted, because saving other fields must not change them. */
const toOptions = <C extends Choice>(
  choices: readonly C[],
  chosen: readonly string[],
  noun: string,
  label: (choice: C) => string,
) => [
  ...choices.map((each) => ({ value: each.id, label: label(each), selected: chosen.includes(each.id) })),
  ...chosen
    .filter((each) => choices.every(({ id }) => id !== each))
    .map((id) => ({ value: id, label: `a deleted ${noun} (${id})`, selected: true })),
]

function topicField(
  name: string,
  label: string,
  { topics, subscribers }: Choices,
  chosen: readonly string[],
): Field {
  const count = (id: string): string => (subscribers.get(id) ?? 0).toLocaleString('en-US')
  const options = toOptions(topics, chosen, 'topic', (topic) => `${topic.name} (${count(topic.id)})`)
  return field(name, label, { type: 'checks', options })
}

const hasUnsubscribe = ({ slots }: TemplateChoice): boolean => slots.includes(UNSUBSCRIBE_SLOT)

/** Builds the options for the template. One without an unsubscribe link can't be sent as a broadcast. */
const templateOptions = (choices: readonly TemplateChoice[], chosen: readonly string[]) =>
  toOptions(choices, chosen, 'template', (choice) =>
    hasUnsubscribe(choice) ? choice.name : `${choice.name} (no unsubscribe link)`,
  )

export const STEPS = ['message', 'audience', 'when'] as const
export type BroadcastStep = (typeof STEPS)[number]

/** Returns the path of a step of a draft. @param path the path of the draft's page. */
export const stepPath = (path: string, step: BroadcastStep): string =>
  `${path}/edit?${new URLSearchParams({ step })}`

export const STEP_TITLES: Readonly<Record<BroadcastStep, string>> = {
  message: 'Message',
  audience: 'Audience',
  when: 'When',
}

/** The page of a draft is its last step. */
type ShownStep = BroadcastStep | 'review'

/**
 * Builds the stepper. A stored draft has links to the other steps.
 * @param path the path of the draft's page, or null.
 * @param missing the steps that keep the draft from being sent.
 */
export function buildStepper(
  current: ShownStep,
  path: string | null,
  missing: ReadonlySet<string> = new Set(),
): Section {
  const all: readonly ShownStep[] = [...STEPS, 'review']
  return {
    kind: 'stepper',
    id: 'steps',
    steps: all.map((step) => ({
      label: step === 'review' ? 'Review' : `${STEP_TITLES[step]}${missing.has(step) ? ' (to do)' : ''}`,
      current: step === current,
      done: all.indexOf(step) < all.indexOf(current) && !missing.has(step),
      href: path && step !== current ? (step === 'review' ? path : stepPath(path, step)) : undefined,
    })),
  }
}

/** The prefix of the fields with default values. */
export const DEFAULT = 'default.'
/** More variables have one field for all. */
const MAX_DEFAULTS = 30

/** Returns the variables whose default value has its own field. The others have values that a line can't show. */
const ownDefaults = (slots: readonly string[], variables: BroadcastDraft['variables']): string[] =>
  slots.length > MAX_DEFAULTS
    ? []
    : slots.filter((slot) => {
        const value = Object.hasOwn(variables, slot) ? variables[slot] : undefined
        return value === undefined || formatLine(value) === value
      })

const DEFAULTS = {
  title: 'Default values of variables (optional)',
  hint: 'Used if a contact doesn’t have the property. Without a default, the contact is skipped. Enter "" for an empty text.',
}

/** Builds a field for the default value of each variable, and one for all others. */
function defaultFields({ slots }: Choices, { variables }: BroadcastDraft): Field[] {
  const own = ownDefaults(slots, variables)
  const others = Object.entries(variables).filter(([name]) => !own.includes(name))
  const fields = own.map((slot) =>
    field(DEFAULT + slot, `Default for ${slot}`, {
      value: Object.hasOwn(variables, slot) ? variables[slot] : '',
      beside: true,
    }),
  )
  if (others.length > 0 || own.length < slots.length)
    fields.push(
      field('variables', own.length > 0 ? 'Other default values' : 'Default values', {
        type: 'textarea',
        value: others.map(pairLine).join('\n'),
        hint: 'One per line, such as name: friend.',
      }),
    )
  return fields.map((each, at) => (at === 0 ? { ...each, group: DEFAULTS } : each))
}

/** Returns the only template that can be sent as a broadcast. */
export function findOnlyTemplate(choices: readonly TemplateChoice[]): Choice | undefined {
  const [only, ...others] = choices.filter(hasUnsubscribe)
  return others.length === 0 ? only : undefined
}

/** Builds the options of a new draft. None is chosen, unless only one can be sent as a broadcast. */
function newOptions(choices: readonly TemplateChoice[]) {
  const chosen = findOnlyTemplate(choices)?.id
  const none = { value: '', label: 'Choose a template', selected: chosen === undefined }
  return [none, ...templateOptions(choices, compact([chosen]))]
}

const messageFields = (choices: Choices, draft: BroadcastDraft | null): Field[] =>
  compact([
    field('name', 'Name', { required: true, value: draft?.name ?? '', hint: 'Only your team sees it.' }),
    field('template_id', 'Template', {
      type: 'select',
      required: true,
      options: draft
        ? templateOptions(choices.templates, [draft.template_id])
        : newOptions(choices.templates),
      hint: draft ? undefined : 'You can set default values for its variables once the draft is saved.',
    }),
    field('from', 'From', { required: true, value: draft?.from_address ?? choices.from }),
    field('reply_to', 'Reply to (optional)', { value: draft?.reply_to ?? '' }),
    field('subject', 'Subject', {
      required: true,
      value: draft?.subject ?? '',
      hint: '{{name}} is filled with the contact’s property of that name.',
    }),
    draft && defaultFields(choices, draft),
    field('tags', 'Tags (optional)', {
      type: 'textarea',
      rows: Math.min(8, (draft?.tags.length ?? 0) + 1),
      value: (draft?.tags ?? []).map(formatLine).join('\n'),
      hint: 'One per line.',
    }),
  ])

const audienceFields = (choices: Choices, draft: BroadcastDraft | null): Field[] => [
  topicField('topic_ids', 'Topics: contacts in any of these', choices, draft?.topic_ids ?? []),
  topicField('exclude_topic_ids', 'Except contacts in any of these', choices, draft?.exclude_topic_ids ?? []),
  ...conditionFields(draft?.conditions ?? [], choices),
]

const whenFields = (draft: BroadcastDraft | null, zone: string): Field[] => [
  field('send_at', `Start at (${zone} time)`, {
    type: 'datetime-local',
    value: timeTyped(draft, zone),
    hint: 'Leave this empty to send as soon as you start the broadcast.',
  }),
  field('rate_per_minute', 'Maximum emails per minute (optional)', {
    type: 'number',
    value: draft?.rate_per_minute?.toString() ?? '',
    hint: 'Spreads a large broadcast over time, so that your website and your support can keep up.',
  }),
  hidden('send_at_zone', zone, true),
]

/** Builds the fields of each step. Without a draft they are empty. @param zone the time zone of its start time. */
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
