/**
 * Imports contacts, or suppressions, from a CSV file that was uploaded (draft.ts), as long work: the file is read in
 * slices into parts of a thousand records at most, then each part is a bulk upsert, with what its records are besides:
 * subscribed to topics, suppressed.
 * Promises: nothing is stored of a file that cannot be read to its end; a bad record costs no other; what was refused
 * can be had as a file again, with the reason beside each record.
 */
import { lockAccount } from '../../accounts/teams/limits.ts'
import { Refusal } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { statusesOf } from '../contacts/contacts.sql.ts'
import { type InitialState, initialStates } from '../contacts/erased.ts'
import { addTopics, holdTopics } from '../contacts/topics.sql.ts'
import { type ContactItem, readItems, upsertContacts } from '../contacts/upsert.ts'
import { finishUpsert, lockUpsert, type StoredRefusal } from '../contacts/upserts.sql.ts'
import { suppressContacts } from '../suppressions/by-hand.ts'
import { type CsvPlace, type CsvTable, REFUSED_COLUMNS, readSlice } from './csv.ts'
import {
  addRecords,
  deleteParts,
  type ImportRow,
  importById,
  importBytes,
  importResults,
  importRows,
  insertImportParts,
  mappingOf,
  nextPart,
} from './imports.sql.ts'
import {
  checkMapping,
  type Extra,
  type Fault,
  faultOf,
  type GivenItem,
  type Mapping,
  recordOf,
} from './mapping.ts'

export const PART = 1_000
const MOST_RECORDS = 100_000

/** @throws Refusal bad_request for a file that cannot be imported at all. @param total its records so far. */
export function checkTotal(total: number, isLast: boolean): void {
  if (total === 0 && isLast) throw new Refusal('bad_request', 'the file has no records after its first line')
  if (total > MOST_RECORDS)
    throw new Refusal('bad_request', `the file must have at most ${MOST_RECORDS} records`)
}

/** A bulk call, and what each of its items is besides. */
export function bodyOf(records: CsvTable['records'], mapping: Mapping): string {
  const read = records.map((record) => recordOf(mapping, record))
  const extras = read.map(({ extra }) => extra)
  return JSON.stringify({
    contacts: read.map(({ item }) => item),
    ...(extras.some((extra) => extra !== null) ? { extras } : {}),
  })
}

/** Why a record was refused: `message` says it of its column, if it is about one. */
export type RecordRefusal = StoredRefusal & Omit<Fault, 'words'>

/**
 * The items of a part and what each is besides; those that cannot be taken are refusals. `refused`: what a refusal at
 * this place is to the person whose file it is.
 */
export function partOf(body: string, mapping: Mapping) {
  const { contacts, extras = [] } = JSON.parse(body) as { contacts: GivenItem[]; extras?: (Extra | null)[] }
  const items = readItems(body).map((item, at) => {
    const fault = extras[at]?.fault
    return fault === undefined ? item : new Refusal('bad_request', fault.words)
  })
  const refused = ({ code, message }: StoredRefusal, at: number): RecordRefusal => {
    const { words, ...where } = extras[at]?.fault ?? faultOf(mapping, contacts[at] ?? { email: '' }, message)
    return { code, message: words, ...where }
  }
  return { items, extras, refused }
}

/** The records as bulk upserts. @param first the place of the first record in the file. */
const partsOf = ({ records }: CsvTable, mapping: Mapping, first: number) =>
  Array.from({ length: Math.ceil(records.length / PART) }, (_, part) => ({
    id: idNow(),
    first: first + part * PART,
    body: bodyOf(records.slice(part * PART, (part + 1) * PART), mapping),
  }))

/** Where an import stands: in the file, or (`place` null) at its parts. */
export type ImportCursor = { place: CsvPlace | null; records: number }

type Slice = { cursor: ImportCursor | null; upserted: number; refused: number; fault?: string }

async function readPart(
  { tx, now }: At,
  teamId: string,
  id: string,
  at: ImportCursor | null,
): Promise<Slice> {
  const read = importBytes(tx, teamId, id)
  const { table, place } = await readSlice(read, at?.place ?? null)
  const before = at?.records ?? 0
  const records = before + table.records.length
  checkTotal(records, place === null)
  const rows = table.records.map(({ row }) => row)
  const mapping = await mappingOf(tx, teamId, id)
  if (before === 0) checkMapping(mapping)
  await insertImportParts(tx, teamId, id, partsOf(table, mapping, before), now)
  await addRecords(tx, teamId, id, rows)
  return { cursor: { place, records }, upserted: 0, refused: 0 }
}

type Upserting = At & { secrets: Pick<Secrets, 'signatures'> }

/** The topics that the records of a part name and the team still has. The account is locked first, as by everybody. */
async function heldTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  await lockAccount(tx, teamId)
  return holdTopics(tx, teamId, [...new Set(ids)])
}

/** How those of these items begin that are no contacts yet and are not fresh. Asked while the account is locked. */
async function beginnings(
  tx: Tx,
  secrets: Upserting['secrets'],
  teamId: string,
  items: readonly (ContactItem | Refusal)[],
): Promise<ReadonlyMap<string, InitialState>> {
  const identities = items.flatMap((item) => (item instanceof Refusal ? [] : [item.identity]))
  const begun = await initialStates(tx, secrets, teamId, identities)
  if (begun.size === 0) return begun
  const known = await statusesOf(tx, teamId, [...begun.keys()])
  return new Map([...begun].filter(([identity]) => !known.has(identity)))
}

/** Carries out the next part; null when there is none. */
async function upsertPart({ tx, now, secrets }: Upserting, teamId: string, id: string) {
  const part = await nextPart(tx, teamId, id)
  const body = part && (await lockUpsert(tx, teamId, part))
  if (!part || body === null) return null
  const mapping = await mappingOf(tx, teamId, id)
  const { merge, topic_ids } = mapping
  const { items, extras, refused } = partOf(body, mapping)
  const wanted = [...topic_ids, ...extras.flatMap((extra) => extra?.topic_ids ?? [])]
  const topics = await heldTopics(tx, teamId, wanted)
  const without =
    topics.size === 0 ? new Map<string, InitialState>() : await beginnings(tx, secrets, teamId, items)
  const result = await upsertContacts({ tx, now, secrets }, teamId, items, { merge })
  const outcomes = 'refusal' in result ? [] : result.items
  const stored = outcomes.flatMap((contact_id, at) => {
    const item = items[at]
    return typeof contact_id !== 'string' || !item || item instanceof Refusal
      ? []
      : [{ contact_id, identity: item.identity, extra: extras[at] }]
  })
  const subscribing = stored.flatMap(({ contact_id, identity, extra }) =>
    [...topic_ids, ...(extra?.topic_ids ?? [])]
      .filter((topic) => topics.has(topic) && !without.get(identity)?.left_topic_ids.includes(topic))
      .map((topic_id) => ({ contact_id, topic_id })),
  )
  if (subscribing.length > 0) await addTopics(tx, teamId, subscribing, now)
  const marks = new Map(
    stored.flatMap(({ identity, extra }) => (extra?.suppress ? [[identity, extra.suppress] as const] : [])),
  )
  if (marks.size > 0) await suppressContacts({ tx, now }, teamId, marks)
  const answers = outcomes.map((one, at) => (typeof one === 'string' ? one : refused(one, at)))
  await finishUpsert(tx, teamId, part, 'refusal' in result ? result : { ...result, items: answers }, now)
  return { upserted: items.length, refused: items.length - stored.length }
}

/**
 * Does the next slice of an import: reads some of the file, or upserts a part.
 * @throws Refusal bad_request when the file's first slice cannot be imported; a later one that cannot is a `fault`.
 */
export async function importSlice(
  { secrets, ...at }: Upserting,
  teamId: string,
  id: string,
  cursor: ImportCursor | null,
): Promise<Slice> {
  if (cursor === null) return readPart(at, teamId, id, null)
  if (cursor.place !== null) {
    try {
      return await readPart(at, teamId, id, cursor)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      await deleteParts(at.tx, teamId, id)
      return { cursor: null, upserted: 0, refused: 0, fault: error.message }
    }
  }
  const upserted = await upsertPart({ ...at, secrets }, teamId, id)
  return upserted ? { cursor, ...upserted } : { cursor: null, upserted: 0, refused: 0 }
}

/** A record that was refused, by its place among the records and by its row in the file. */
export type RefusedRecord = RecordRefusal & { record: number; row: number }

/**
 * What an import has made so far: contacts that are new and those that there were, and how many records were of a
 * contact of a record before them.
 */
export type Made = { created: number; updated: number; repeated: number }

/** How an import stands, and what it refused so far. @throws Refusal not_found. */
export async function showImport(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<ImportRow & Made & { refused: RefusedRecord[] }> {
  const row = await importById(tx, teamId, id)
  if (!row) throw new Refusal('not_found', 'there is no such import; imports are forgotten after a week')
  const results = await importResults(tx, teamId, id)
  const rows = await importRows(tx, teamId, id)
  const refused: RefusedRecord[] = []
  const contacts = new Set<string>()
  let [created, taken] = [0, 0]
  for (const { first_record, length, result } of results) {
    const items = 'refusal' in result ? Array<StoredRefusal>(length).fill(result.refusal) : result.items
    if ('created' in result) created += result.created
    for (const [at, item] of items.entries()) {
      const record = first_record + at
      if (typeof item !== 'string') refused.push({ ...item, record, row: rows[record] ?? 0 })
      else {
        contacts.add(item)
        taken += 1
      }
    }
  }
  return { ...row, created, updated: contacts.size - created, repeated: taken - contacts.size, refused }
}

/**
 * The refused records as they came, each with its row and the reason, and with what stood beyond its columns: to be
 * corrected and imported again.
 */
export async function refusedRecords(tx: Tx, teamId: string, id: string) {
  const { refused } = await showImport(tx, teamId, id)
  const read = importBytes(tx, teamId, id)
  const start = await readSlice(read, null)
  const { header } = start.table
  async function* rows() {
    let [slice, first] = [start, 0]
    for (const { record, row, column, message } of refused) {
      while (record >= first + slice.table.records.length && slice.place !== null) {
        first += slice.table.records.length
        slice = await readSlice(read, slice.place)
      }
      const cells = slice.table.records[record - first]?.cells ?? []
      const reason = column === undefined ? message : `${header[column]} ${message}`
      const named = header.map((_, at) => cells[at] ?? '')
      yield [...named, String(row), reason, ...cells.slice(header.length)]
    }
  }
  return { header: [...header, ...REFUSED_COLUMNS], rows: rows() }
}
