/** The form that maps the columns of an uploaded file, with sample values, and its parser. */

import type { TopicRow } from '../../../db/audience/contacts/topics.sql.ts'
import { AFTER_NO } from '../../../db/audience/import/consent.ts'
import type { Draft } from '../../../db/audience/import/draft.ts'
import type { Becomes, Mapping } from '../../../db/audience/import/mapping.ts'
import { SUPPRESSIONS } from '../../../db/audience/suppressions/by-hand.ts'
import { parseReason } from '../../../db/audience/suppressions/lift.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { isSlotName } from '../../../db/validation/slots.ts'
import { text } from '../components/cell.ts'
import { readTopics } from '../components/properties.ts'
import type { Field, Section } from '../components/section.ts'
import { buildOptions, compact, field } from '../server/builders.ts'
import { wordParam } from '../server/list.ts'
import { TEXTS } from '../texts.ts'
import { topicChoices } from './contacts.ts'

const SAMPLE_RECORDS = 5
/** Maximum length of a sample value below a field and in the table. */
const FIELD_SAMPLE_CHARACTERS = 40
const TABLE_SAMPLE_CHARACTERS = 120

const cut = (value: string, most: number): string =>
  value.length > most ? `${value.slice(0, most).toWellFormed()}…` : value

const IGNORED: Becomes = { to: 'ignore' }

export const VARIABLE_NAMES = 'Use only letters, digits, _, - and periods.'

const toChoice = (column: Becomes): string => (column.to === 'topic' ? `topic:${column.id}` : column.to)

function choices({ mapping }: Draft, topics: readonly TopicRow[]) {
  const email = { value: 'email', label: 'Email address' }
  const ignore = { value: 'ignore', label: 'Do not import' }
  if (mapping.suppress)
    return [
      email,
      { value: 'status', label: 'Suppressed as (bounced or complained)' },
      { value: 'reason', label: 'Reason' },
      ignore,
    ]
  const exported = mapping.columns.some(({ to }) => to === 'properties' || to === 'status')
  return compact([
    email,
    { value: 'property', label: 'Property' },
    { value: 'consent', label: 'Consent (yes or no)' },
    ...topics.map(({ id, name }) => ({ value: `topic:${id}`, label: `Topic ${name} (yes or no)` })),
    exported && [
      { value: 'properties', label: 'Properties, as JSON' },
      { value: 'status', label: 'Status (a record is rejected if its contact has another status)' },
    ],
    ignore,
  ])
}

function sampleValues({ table }: Draft, at: number): string {
  const values = table.records.map(({ cells }) => cells[at] ?? '').filter((value) => value !== '')
  const few = [...new Set(values)].slice(0, 3)
  if (few.length === 0) return 'empty in the first records'
  return few.map((value) => cut(value, FIELD_SAMPLE_CHARACTERS)).join(' · ')
}

/** Builds a select for each column, and for contacts a field with the name of the property. */
export function columnFields(draft: Draft, topics: readonly TopicRow[]): Field[] {
  const options = choices(draft, topics)
  return draft.table.header.flatMap((name, at) => {
    const label = name || `Column ${at + 1}`
    const chosen = draft.mapping.columns[at] ?? { to: 'ignore' }
    // The topic may have been deleted.
    const column = options.some(({ value }) => value === toChoice(chosen)) ? chosen : IGNORED
    const select: Field = field(`column.${at}`, label, {
      type: 'select',
      hint: sampleValues(draft, at),
      options: options.map((option) => ({ ...option, selected: option.value === toChoice(column) })),
    })
    const value = column.to === 'property' ? column.name : name
    const isUsable = value === '' || isSlotName(value)
    const property: Field = field(`name.${at}`, `Property name for ${label}`, {
      value,
      warns: true,
      hint: isUsable ? undefined : `No template can use this name. ${VARIABLE_NAMES}`,
    })
    return draft.mapping.suppress ? [select] : [select, property]
  })
}

const NO_LABELS: Readonly<Record<(typeof AFTER_NO)[number], string>> = {
  unsubscribed: 'are unsubscribed',
  suppressed: 'are suppressed, so that broadcasts never go to them',
  ignore: 'are imported like the others',
}

/** Builds the choice for contacts without consent, if a column has consent. */
const consentFields = ({ no }: Mapping): Field[] =>
  no === undefined
    ? []
    : [
        field('no', 'Contacts without consent', {
          type: 'radios',
          hint: 'Applies to new and existing contacts. A “yes” in a consent column never resubscribes anyone.',
          options: buildOptions(AFTER_NO, [no], (value) => NO_LABELS[value]),
        }),
      ]

export const settingFields = ({ mapping }: Draft, topics: readonly TopicRow[]): Field[] =>
  mapping.suppress
    ? [
        field('as', 'Suppress as (if no “Suppressed as” column has a value)', {
          type: 'radios',
          options: buildOptions(SUPPRESSIONS, [mapping.suppress.as]),
        }),
        field('reason', 'Reason', {
          value: mapping.suppress.detail,
          required: true,
          hint: 'Such as the source of the list. Recorded in the audit log.',
        }),
      ]
    : [
        ...consentFields(mapping),
        field('merge', 'Existing contacts', {
          type: 'radios',
          hint:
            mapping.no === undefined
              ? 'Their status and topics are kept.'
              : 'Their topics are kept. Their status only changes if a consent column contains “no”.',
          options: [
            { value: 'yes', label: 'Keep properties that aren’t in the file', selected: mapping.merge },
            { value: 'no', label: 'Delete properties that aren’t in the file', selected: !mapping.merge },
          ],
        }),
        ...topicChoices(topics, mapping.topic_ids).map((field) => ({
          ...field,
          label: 'Subscribe everyone to',
          hint: 'Broadcasts only reach contacts with a topic.',
        })),
      ]

/** Shows the first records. Each column of the file is a row, because files are wider than pages. */
export function samples({ table: { header, records } }: Draft): Section {
  const first = records.slice(0, SAMPLE_RECORDS)
  return {
    kind: 'table',
    title: first.length === 1 ? 'The first record' : `The first ${first.length} records`,
    fold: true,
    columns: [
      { label: 'Column', main: true, wrap: true },
      ...first.map(({ row }) => ({ label: `Row ${row}`, wrap: true })),
    ],
    rows: header.map((name, at) => ({
      cells: [
        text(name || `Column ${at + 1}`),
        ...first.map(({ cells }) => text(cut(cells[at] ?? '', TABLE_SAMPLE_CHARACTERS))),
      ],
    })),
    empty: 'The file has no records.',
  }
}

function readColumn(form: URLSearchParams, at: number): Becomes {
  const choice = form.get(`column.${at}`) ?? 'ignore'
  if (choice.startsWith('topic:')) return { to: 'topic', id: choice.slice('topic:'.length) }
  if (choice === 'property') return { to: 'property', name: (form.get(`name.${at}`) ?? '').trim() }
  const simple = (['ignore', 'email', 'properties', 'status', 'reason', 'consent'] as const).find(
    (to) => to === choice,
  )
  if (simple === undefined) throw new RequestError('bad_request', fill(TEXTS.badColumn, { n: at + 1 }))
  return { to: simple }
}

/** Reads the mapping from a form. @throws RequestError bad_request. */
export const mappingSent = (form: URLSearchParams, draft: Draft): Mapping => ({
  names: draft.table.header,
  columns: draft.table.header.map((_, at) => readColumn(form, at)),
  merge: form.get('merge') !== 'no',
  topic_ids: draft.mapping.suppress ? [] : readTopics(form),
  ...(draft.mapping.no === undefined ? {} : { no: wordParam(form, 'no', AFTER_NO) ?? 'unsubscribed' }),
  suppress: draft.mapping.suppress && {
    as: wordParam(form, 'as', SUPPRESSIONS) ?? 'bounced',
    detail: parseReason(form.get('reason') ?? ''),
  },
})
