/**
 * Maps the columns of an imported file: guesses the mapping from their names, validates it and applies it to records.
 * An invalid value in a mapped column is an error of its record. Pure.
 */
import { invalidField, RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { isObject } from '../../validation/fields.ts'
import { codePoints, memberPath, parseJson } from '../../validation/strings.ts'
import { LONGEST_KEY } from '../contacts/fields.ts'
import type { ByHand } from '../suppressions/by-hand.ts'
import { TEXTS } from '../texts.ts'
import { type AfterNo, consentIn, isConsent } from './consent.ts'
import { type CsvRecord, EXPORT_COLUMNS, isExport } from './csv.ts'

export type Purpose = 'contacts' | 'suppressions'

/**
 * The target of a column. `properties` is a JSON map, as in our export. `status` must match the contact's status, or
 * is the type of an imported suppression, and `reason` its reason. `topic` and `consent` contain yes or no.
 */
export type Becomes =
  | { to: 'ignore' | 'email' | 'properties' | 'status' | 'reason' | 'consent' }
  | { to: 'property'; name: string }
  | { to: 'topic'; id: string }

export type Mapping = {
  names: readonly string[]
  columns: readonly Becomes[]
  /** True to add properties to existing ones, false to replace them. */
  merge: boolean
  topic_ids: readonly string[]
  /** The action for contacts without consent. Absent if the file has no such column. */
  no?: AfterNo
  /** The default type and reason of suppressions. Null to import contacts. */
  suppress: ByHand | null
}

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '')

const EMAIL_NAMES = ['email', 'emailaddress', 'mail', 'mailaddress', 'emailadresse', 'adresseemail']
const REASON_NAMES = ['words', 'reason', 'detail', 'details', 'description']

function contactColumn(name: string, exported: boolean): Becomes {
  if (name === '') return { to: 'ignore' }
  if (!exported && isConsent(name)) return { to: 'consent' }
  if (!exported || !EXPORT_COLUMNS.some((known) => known === name)) return { to: 'property', name }
  return name === 'status' || name === 'properties' ? { to: name } : { to: 'ignore' }
}

const suppressionColumn = (name: string): Becomes => {
  if (bare(name) === 'status') return { to: 'status' }
  return { to: REASON_NAMES.includes(bare(name)) ? 'reason' : 'ignore' }
}

/** Guesses the mapping from the names of the columns. */
export function mappingFor(header: readonly string[], purpose: Purpose): Mapping {
  const exact = header.findIndex((name) => name.toLowerCase() === 'email')
  const email = exact < 0 ? header.findIndex((name) => EMAIL_NAMES.includes(bare(name))) : exact
  const exported = isExport(header)
  const columns = header.map((name, at): Becomes => {
    if (at === email) return { to: 'email' }
    return purpose === 'suppressions' ? suppressionColumn(name) : contactColumn(name, exported)
  })
  const suppress = purpose === 'suppressions' ? ({ as: 'bounced', detail: '' } as const) : null
  const no = columns.some(({ to }) => to === 'consent') ? ({ no: 'unsubscribed' } as const) : {}
  return { names: header, columns, merge: true, topic_ids: [], ...no, suppress }
}

/** @throws RequestError bad_request for the field of an invalid property name. */
function checkNames(columns: readonly Becomes[]): void {
  const names = columns.map((column) => (column.to === 'property' ? column.name : null))
  for (const [at, name] of names.entries()) {
    if (name === null) continue
    if (name === '') throw invalidField(`name.${at}`, 'must not be empty')
    if (codePoints(name) > LONGEST_KEY)
      throw invalidField(`name.${at}`, `must have at most ${LONGEST_KEY} characters`)
    if (names.indexOf(name) !== at)
      throw invalidField(`name.${at}`, 'is already the name of another property. Rename one of them')
  }
}

/** @throws RequestError bad_request for an invalid mapping. */
export function checkMapping({ columns, suppress }: Mapping): void {
  const refuse = (words: string) => {
    throw new RequestError('bad_request', words)
  }
  if (suppress?.detail === '') refuse(TEXTS.noReason)
  if (!columns.some(({ to }) => to === 'email')) refuse(TEXTS.noEmailColumn)
  checkNames(columns)
  const once = (['email', 'properties', 'status', 'reason'] as const).find(
    (word) => columns.filter(({ to }) => to === word).length > 1,
  )
  if (once !== undefined)
    refuse(fill(TEXTS.targetTwice, { target: once === 'email' ? 'email address' : once }))
}

/**
 * Why a record is rejected. `column` is the index of the column that it is about, which `words` doesn't name. `value`
 * is its shortened value.
 */
export type Fault = { words: string; column?: number; value?: string }

/** A record's data in addition to its contact: topics, a suppression, or why it is rejected. */
export type Extra = { topic_ids?: readonly string[]; suppress?: ByHand; saysNo?: boolean; fault?: Fault }

const SHOWN_LENGTH = 100
const shown = (value: string): string =>
  value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH).toWellFormed()}…` : value

/** Invisible characters: control and format characters, spaces other than the common one, and fillers. */
const UNSEEN = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\u{34f}|\u{115f}|\u{1160}|\u{3164}|\u{ffa0}|(?! )\p{Zs}/gu

/** Shows invisible characters by their names, such as U+200B. */
const withUnseen = (value: string): string =>
  value.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0) ?? 0
    return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`
  })

const YES = ['yes', 'y', 'true', '1', 'x', 'on', 'subscribed']
const NO = ['', 'no', 'n', 'false', '0', 'off', 'unsubscribed']

type Cells = readonly (readonly [Becomes, string])[]

const readCell = (cells: Cells, to: Becomes['to']): string =>
  cells.find(([column]) => column.to === to)?.[1] ?? ''

function readTopics(cells: Cells): { topic_ids: string[]; fault?: Fault } {
  const topic_ids: string[] = []
  for (const [at, [column, value]] of cells.entries()) {
    if (column.to !== 'topic' || NO.includes(value.toLowerCase())) continue
    if (!YES.includes(value.toLowerCase()))
      return { topic_ids, fault: { words: 'must be yes or no', column: at, value: shown(value) } }
    topic_ids.push(column.id)
  }
  return { topic_ids }
}

/** Returns the suppression of a record. Understands other services' names for bounces and complaints. */
function readSuppression(cells: Cells, { as, detail }: ByHand): Extra {
  const status = readCell(cells, 'status')
  const words = readCell(cells, 'reason').slice(0, 500).toWellFormed() || detail
  if (status === '') return { suppress: { as, detail: words } }
  if (/complain|spam/i.test(status)) return { suppress: { as: 'complained', detail: words } }
  if (/bounce/i.test(status)) return { suppress: { as: 'bounced', detail: words } }
  const column = cells.findIndex(([{ to }]) => to === 'status')
  return { fault: { words: 'must be bounced or complained', column, value: shown(status) } }
}

const lostBy = ({ cells, fault }: CsvRecord): Fault | null =>
  fault === undefined ? null : { words: fault, value: shown(cells.join(' ')) }

/**
 * Returns a fault for cells beyond the columns. They usually come from an unquoted separator, so no cell can be
 * trusted.
 */
function checkSurplus({ cells }: CsvRecord, { columns }: Mapping): Fault | null {
  const surplus = cells.slice(columns.length)
  if (surplus.every((cell) => cell === '')) return null
  const words = fill(TEXTS.surplusCells, { cells: cells.length, columns: columns.length })
  return { words: fill(TEXTS.quoteSeparators, { surplus: words }), value: shown(surplus.join(' ')) }
}

/** Returns whether a consent column contains no. A cell that is neither yes nor no is a fault. */
function refusalIn(
  cells: Cells,
  { names, no = 'unsubscribed' }: Mapping,
): { saysNo: boolean; fault?: Fault } {
  let saysNo = false
  for (const [at, [column, value]] of cells.entries()) {
    if (column.to !== 'consent' || no === 'ignore') continue
    const said = consentIn(names[at] ?? '', value)
    if (said === null)
      return { saysNo, fault: { words: 'must be yes or no', column: at, value: shown(value) } }
    saysNo ||= said === 'no'
  }
  return { saysNo }
}

function readExtra(cells: Cells, mapping: Mapping): Extra | null {
  if (mapping.suppress) return readSuppression(cells, mapping.suppress)
  const { topic_ids, fault } = readTopics(cells)
  const refusal = refusalIn(cells, mapping)
  const wrong = fault ?? refusal.fault
  if (wrong !== undefined) return { fault: wrong }
  if (refusal.saysNo) return { topic_ids, saysNo: true }
  return topic_ids.length > 0 ? { topic_ids } : null
}

/**
 * Collects a contact's properties, or undefined if no column is mapped to them. Invalid JSON stays text, so that its
 * validation fails.
 */
function collectProperties(cells: Cells): unknown {
  const isOne = ([{ to }]: Cells[number]): boolean => to === 'property' || to === 'properties'
  if (!cells.some(isOne)) return undefined
  const named = Object.fromEntries(
    cells.flatMap(([column, value]) =>
      column.to === 'property' && value !== '' ? [[column.name, value]] : [],
    ),
  )
  const cell = readCell(cells, 'properties') || '{}'
  const map = parseJson(cell)
  if (map === undefined) return cell
  return isObject(map) ? { ...map, ...named } : map
}

/** A contact as an item of a bulk upsert, before validation. */
export type GivenItem = { email: string; properties?: unknown; status?: string }

/** Returns the field of an item that a column became, as errors name it, and its value. */
function heldBy({ email, properties, status = '' }: GivenItem, column: Becomes): [string, string] {
  switch (column.to) {
    case 'email':
      return ['email', email]
    case 'status':
      return ['status', status]
    case 'properties':
      return ['properties', JSON.stringify(properties)]
    case 'property': {
      const value = isObject(properties) ? properties[column.name] : ''
      return [memberPath('properties', column.name), String(value ?? '')]
    }
    default:
      return ['', '']
  }
}

/** Turns an item's error into a fault of its record, about the column with the invalid field. */
export function toFault({ columns }: Mapping, item: GivenItem, { message, fields }: RequestError): Fault {
  for (const [column, becomes] of columns.entries()) {
    const [path, value] = heldBy(item, becomes)
    const found = path === '' ? undefined : fields.find(({ field }) => field === path)
    if (!found) continue
    const seen = becomes.to === 'email' ? withUnseen(value) : value
    return { words: found.problem, column, value: shown(seen) }
  }
  return { words: message }
}

/** Turns a record into an item of a bulk upsert, and its other data. */
export function toItem(mapping: Mapping, record: CsvRecord): { item: GivenItem; extra: Extra | null } {
  const cells = mapping.columns.map((column, at) => [column, record.cells[at] ?? ''] as const)
  const status = mapping.suppress ? '' : readCell(cells, 'status')
  const properties = collectProperties(cells)
  const item = {
    email: readCell(cells, 'email'),
    ...(properties === undefined ? {} : { properties }),
    ...(status === '' ? {} : { status }),
  }
  const fault = lostBy(record) ?? checkSurplus(record, mapping)
  return { item, extra: fault ? { fault } : readExtra(cells, mapping) }
}
