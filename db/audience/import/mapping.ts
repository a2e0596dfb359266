/**
 * What the columns of an imported file become: guessed by their names, checked, and applied to its records. Pure.
 * Promises: without a word from anybody a file is read as its header says, our own exports as they were written;
 * nothing of a mapped column is dropped: what cannot be read is a fault of its record.
 */
import { Refusal } from '../../errors.ts'
import { isObject } from '../../text/fields.ts'
import { codePoints } from '../../text/strings.ts'
import { LONGEST_KEY } from '../contacts/fields.ts'
import type { ByHand } from '../suppressions/by-hand.ts'
import { type CsvRecord, EXPORT_COLUMNS, isExport } from './csv.ts'

/** What a file is imported for. */
export type Purpose = 'contacts' | 'suppressions'

/**
 * What a column becomes. `properties`: a JSON map of them, as in our export. `status`: for contacts, what theirs must
 * be anyway; for suppressions, what each is suppressed as. `reason`: why it is suppressed. `topic`: yes or no.
 */
export type Becomes =
  | { to: 'ignore' | 'email' | 'properties' | 'status' | 'reason' }
  | { to: 'property'; name: string }
  | { to: 'topic'; id: string }

export type Mapping = {
  /** What the file calls its columns. */
  names: readonly string[]
  columns: readonly Becomes[]
  /** Whether properties are added to those of a contact that there is; else they are put in their place. */
  merge: boolean
  /** What all of them are subscribed to. */
  topic_ids: readonly string[]
  /** What the contacts are suppressed as and why, unless their record says otherwise; null: they are not. */
  suppress: ByHand | null
}

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '')

const EMAIL_NAMES = ['email', 'emailaddress', 'mail', 'mailaddress', 'emailadresse', 'adresseemail']
const REASON_NAMES = ['words', 'reason', 'detail', 'details', 'description']

function contactColumn(name: string, exported: boolean): Becomes {
  if (name === '') return { to: 'ignore' }
  if (!exported || !EXPORT_COLUMNS.some((known) => known === name)) return { to: 'property', name }
  return name === 'status' || name === 'properties' ? { to: name } : { to: 'ignore' }
}

const suppressionColumn = (name: string): Becomes => {
  if (bare(name) === 'status') return { to: 'status' }
  return { to: REASON_NAMES.includes(bare(name)) ? 'reason' : 'ignore' }
}

/** What the columns become by their names alone. */
export function mappingFor(header: readonly string[], purpose: Purpose): Mapping {
  const exact = header.indexOf('email')
  const email = exact < 0 ? header.findIndex((name) => EMAIL_NAMES.includes(bare(name))) : exact
  const exported = isExport(header)
  const columns = header.map((name, at): Becomes => {
    if (at === email) return { to: 'email' }
    return purpose === 'suppressions' ? suppressionColumn(name) : contactColumn(name, exported)
  })
  const suppress = purpose === 'suppressions' ? ({ as: 'bounced', detail: '' } as const) : null
  return { names: header, columns, merge: false, topic_ids: [], suppress }
}

/** The first of these that stands among them twice. */
const twice = (words: readonly string[]): string | undefined =>
  words.find((word, at) => words.indexOf(word) !== at)

/** @throws Refusal bad_request for a mapping that no contact could be made by. */
export function checkMapping({ columns, suppress }: Mapping): void {
  const refuse = (words: string) => {
    throw new Refusal('bad_request', words)
  }
  if (suppress?.detail === '') refuse('say why they are suppressed')
  if (!columns.some(({ to }) => to === 'email')) refuse('choose the column that is the email address')
  const names = columns.flatMap((column) => (column.to === 'property' ? [column.name] : []))
  if (names.includes('')) refuse('a property must have a name')
  const long = names.find((name) => codePoints(name) > LONGEST_KEY)
  if (long !== undefined)
    refuse(`${JSON.stringify(long)} is too long: a property’s name has at most ${LONGEST_KEY} characters`)
  const same = twice(names)
  if (same !== undefined) refuse(`two properties are called ${JSON.stringify(same)}: give one another name`)
  const once = (['email', 'properties', 'status', 'reason'] as const).find(
    (word) => columns.filter(({ to }) => to === word).length > 1,
  )
  if (once !== undefined)
    refuse(`two columns become the ${once === 'email' ? 'email address' : once}: choose one`)
}

/** What a record is besides a contact. `fault`: why it cannot be taken. */
export type Extra = { topic_ids?: readonly string[]; suppress?: ByHand; fault?: string }

const YES = ['yes', 'y', 'true', '1', 'x', 'on', 'subscribed']
const NO = ['', 'no', 'n', 'false', '0', 'off', 'unsubscribed']

type Cells = readonly (readonly [Becomes, string])[]

const cellOf = (cells: Cells, to: Becomes['to']): string =>
  cells.find(([column]) => column.to === to)?.[1] ?? ''

function topicsOf(cells: Cells): { topic_ids: string[]; fault?: string } {
  const topic_ids: string[] = []
  for (const [column, value] of cells) {
    if (column.to !== 'topic' || NO.includes(value.toLowerCase())) continue
    if (!YES.includes(value.toLowerCase()))
      return { topic_ids, fault: `a topic must be yes or no, not ${JSON.stringify(value.slice(0, 100))}` }
    topic_ids.push(column.id)
  }
  return { topic_ids }
}

/** What a record is suppressed as, in the words of whichever service. */
function suppressionOf(cells: Cells, { as, detail }: ByHand): Extra {
  const status = cellOf(cells, 'status')
  const words = cellOf(cells, 'reason').slice(0, 500).toWellFormed() || detail
  if (status === '') return { suppress: { as, detail: words } }
  if (/complain|spam/i.test(status)) return { suppress: { as: 'complained', detail: words } }
  if (/bounce/i.test(status)) return { suppress: { as: 'bounced', detail: words } }
  return { fault: `status must be bounced or complained, not ${JSON.stringify(status.slice(0, 100))}` }
}

function extraOf(cells: Cells, { suppress }: Mapping): Extra | null {
  if (suppress) return suppressionOf(cells, suppress)
  const { topic_ids, fault } = topicsOf(cells)
  if (fault !== undefined) return { fault }
  return topic_ids.length > 0 ? { topic_ids } : null
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A contact's properties; undefined where no column becomes one. Empty cells are none. */
function propertiesOf(cells: Cells): unknown {
  const isOne = ([{ to }]: Cells[number]): boolean => to === 'property' || to === 'properties'
  if (!cells.some(isOne)) return undefined
  const named = Object.fromEntries(
    cells.flatMap(([column, value]) =>
      column.to === 'property' && value !== '' ? [[column.name, value]] : [],
    ),
  )
  const map = jsonOf(cellOf(cells, 'properties') || '{}')
  return isObject(map) ? { ...map, ...named } : map
}

/** A record as an item of a bulk upsert, and what it is besides. */
export function recordOf(mapping: Mapping, record: CsvRecord): { item: object; extra: Extra | null } {
  const cells = mapping.columns.map((column, at) => [column, record.cells[at] ?? ''] as const)
  const status = mapping.suppress ? '' : cellOf(cells, 'status')
  const properties = propertiesOf(cells)
  const item = {
    email: cellOf(cells, 'email'),
    ...(properties === undefined ? {} : { properties }),
    ...(status === '' ? {} : { status }),
  }
  return { item, extra: extraOf(cells, mapping) }
}
