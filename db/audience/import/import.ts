/**
 * Imports contacts or suppressions from an uploaded CSV file (draft.ts), as a background job in two passes. The first
 * reads the complete file. The second stores its records in slices. Nothing is stored if the file can't be read
 * completely. An invalid record doesn't affect others.
 */

import { lockAccount } from '../../accounts/teams/limits.ts'
import { RequestError, requestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idOfName } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { addTopics, holdTopics } from '../contacts/topics.sql.ts'
import { type ContactItem, readItem, upsertContacts } from '../contacts/upsert.ts'
import { unsubscribeAll } from '../subscription/subscription.ts'
import { suppressedAmong } from '../suppressions/addresses.sql.ts'
import { CAUSE_AS, suppressAddresses } from '../suppressions/by-hand.ts'
import { TEXTS } from '../texts.ts'
import type { AfterNo } from './consent.ts'
import { type CsvPlace, type CsvRecord, REFUSED_COLUMNS, readSlice } from './csv.ts'
import {
  addSlice,
  importById,
  importBytes,
  type RefusedRecord,
  readMapping,
  refusingSlices,
  setRecords,
} from './imports.sql.ts'
import { checkMapping, type Extra, type GivenItem, type Mapping, toFault, toItem } from './mapping.ts'

/** Records per upsert, and in the test of a draft. */
export const SLICE_RECORDS = 1_000
export const MAX_RECORDS = 100_000

/** @param total the records so far. @throws RequestError bad_request if the file has none or too many. */
export function checkTotal(total: number, isLast: boolean): void {
  if (total === 0 && isLast) throw new RequestError('bad_request', TEXTS.noRecords)
  if (total > MAX_RECORDS) throw requestError('bad_request', TEXTS.tooManyRecords, { most: MAX_RECORDS })
}

/** A record as an item to upsert, or an error, and its other data. */
type ReadRecord = { row: number; given: GivenItem; item: ContactItem | RequestError; extra: Extra | null }

export const readRecords = (records: readonly CsvRecord[], mapping: Mapping): ReadRecord[] =>
  records.map((record) => {
    const { item: given, extra } = toItem(mapping, record)
    const item = extra?.fault ? new RequestError('bad_request', extra.fault.words) : readItem(given)
    return { row: record.row, given, item, extra }
  })

/** Returns the rejected records, with reasons that name the user's columns. */
export const refusedAmong = (
  records: readonly ReadRecord[],
  outcomes: readonly (string | RequestError)[],
  mapping: Mapping,
): RefusedRecord[] =>
  records.flatMap(({ row, given, extra }, at) => {
    const outcome = outcomes[at]
    if (!(outcome instanceof RequestError)) return []
    const { words, ...where } = extra?.fault ?? toFault(mapping, given, outcome)
    return [{ at, row, message: words, ...where }]
  })

/** The progress of an import: the pass, the position in the file, and the records before it. */
type ImportCursor = { pass: 'check' | 'store'; place: CsvPlace | null; records: number }

/** `done` counts records that were stored or rejected. `total` is null until it is known. */
type Slice = { cursor: ImportCursor | null; total: number | null; done: number; refused: number }

async function checkSlice(
  tx: Tx,
  teamId: string,
  id: string,
  { place: from, records: before }: Omit<ImportCursor, 'pass'>,
): Promise<Slice> {
  if (from === null) checkMapping(await readMapping(tx, teamId, id))
  const { table, place } = await readSlice(importBytes(tx, teamId, id), from)
  const records = before + table.records.length
  checkTotal(records, place === null)
  await setRecords(tx, teamId, id, records)
  const whole = { done: 0, refused: 0 }
  return place === null
    ? { ...whole, cursor: { pass: 'store', place, records: 0 }, total: records }
    : { ...whole, cursor: { pass: 'check', place, records }, total: null }
}

/** `since` is the database time at which the import started. */
type Upserting = At & { secrets: Pick<Secrets, 'signatures'>; since: Date }

/** Locks and returns the topics that the team still has. Locks the account first, as everywhere. */
async function heldTopics(tx: Tx, teamId: string, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  await lockAccount(tx, teamId)
  return holdTopics(tx, teamId, [...new Set(ids)])
}

type Stored = { contact_id: string; identity: string; email: string; extra: Extra | null }
type Storing = Pick<Upserting, 'tx' | 'now' | 'since'>

async function storeExtras(
  { tx, now, since }: Storing,
  teamId: string,
  stored: readonly Stored[],
  wants: (record: Stored) => readonly string[],
): Promise<void> {
  const subscribing = stored.flatMap((record) =>
    wants(record).map((topic_id) => ({ contact_id: record.contact_id, topic_id })),
  )
  if (subscribing.length > 0) await addTopics(tx, teamId, subscribing, { now, since })
}

/**
 * Upserts records with their topics and consent. @returns a contact ID or an error for each, and the new contacts.
 */
async function upsertRecords(
  { tx, now, secrets, since }: Upserting,
  teamId: string,
  records: readonly ReadRecord[],
  { merge, topic_ids, no = 'unsubscribed' }: Mapping,
): Promise<Outcomes> {
  const items = records.map(({ item }) => item)
  const wanted = [...topic_ids, ...records.flatMap(({ extra }) => extra?.topic_ids ?? [])]
  const topics = await heldTopics(tx, teamId, wanted)
  const result = await upsertContacts({ tx, now, secrets }, teamId, items, { merge })
  if ('refusal' in result)
    return {
      outcomes: items.map((item) => (item instanceof RequestError ? item : result.refusal)),
      created: [],
    }
  const stored = records.flatMap(({ item, extra }, at) => {
    const contact_id = result.items[at]
    if (typeof contact_id !== 'string' || item instanceof RequestError) return []
    return [{ contact_id, identity: item.identity, email: item.email, extra }]
  })
  await storeExtras({ tx, now, since }, teamId, stored, ({ extra }) =>
    [...topic_ids, ...(extra?.topic_ids ?? [])].filter((topic) => topics.has(topic)),
  )
  await storeRefusals({ tx, now }, teamId, { stored, no })
  return { outcomes: result.items, created: result.created }
}

/** Unsubscribes or suppresses the contacts of records without consent, including existing contacts. */
async function storeRefusals(
  { tx, now }: At,
  teamId: string,
  { stored, no }: { stored: readonly Stored[]; no: AfterNo },
): Promise<void> {
  const refusing = stored.filter(({ extra }) => extra?.saysNo)
  if (no === 'suppressed')
    await suppressAddresses(
      { tx, now },
      teamId,
      refusing.map(({ identity, email }) => ({
        identity,
        email,
        cause: 'manual',
        reason: 'opted out in an imported file',
      })),
    )
  else
    await unsubscribeAll(
      { tx, now },
      teamId,
      refusing.map(({ contact_id }) => contact_id),
    )
}

type Outcomes = { outcomes: (string | RequestError)[]; created: readonly string[] }

/** An ID for an address, for the counts of an import of suppressions. */
const addressId = (teamId: string, identity: string): string => idOfName(teamId, identity)

/** Predicts the results for records of suppressions: an ID for each address, and the addresses not suppressed yet. */
export async function suppressionOutcomes(
  tx: Tx,
  teamId: string,
  records: readonly ReadRecord[],
): Promise<Outcomes> {
  const items = records.map(({ item }) => item)
  const refs = items.flatMap((item) =>
    item instanceof RequestError ? [] : [{ team_id: teamId, identity: item.identity }],
  )
  const known = new Set((await suppressedAmong(tx, refs)).map(({ identity }) => identity))
  const fresh = refs.flatMap(({ identity }) => (known.has(identity) ? [] : [addressId(teamId, identity)]))
  const outcomes = items.map((item) =>
    item instanceof RequestError ? item : addressId(teamId, item.identity),
  )
  return { outcomes, created: [...new Set(fresh)] }
}

/** Suppresses the addresses of records. Creates no contacts and uses no quota. */
async function suppressRecords(
  { tx, now }: Upserting,
  teamId: string,
  records: readonly ReadRecord[],
): Promise<Outcomes> {
  const result = await suppressionOutcomes(tx, teamId, records)
  const added = records.flatMap(({ item, extra }) => {
    if (item instanceof RequestError || !extra?.suppress) return []
    const { identity, email } = item
    return [{ identity, email, cause: CAUSE_AS[extra.suppress.as], reason: extra.suppress.detail }]
  })
  await suppressAddresses({ tx, now }, teamId, added)
  return result
}

async function storeSlice(
  at: Upserting,
  teamId: string,
  id: string,
  { place: from, records: first }: Omit<ImportCursor, 'pass'>,
): Promise<Slice> {
  const mapping = await readMapping(at.tx, teamId, id)
  const { table, place } = await readSlice(importBytes(at.tx, teamId, id), from, SLICE_RECORDS)
  const records = readRecords(table.records, mapping)
  const store = mapping.suppress ? suppressRecords : upsertRecords
  const { outcomes, created } = await store(at, teamId, records, mapping)
  const taken = outcomes.filter((outcome) => typeof outcome === 'string')
  const refused = refusedAmong(records, outcomes, mapping)
  const known = [...new Set(taken).difference(new Set(created))]
  await addSlice(at.tx, teamId, id, { first, place: from, created, known, taken: taken.length, refused })
  const done = records.length
  const cursor: ImportCursor | null = place && { pass: 'store', place, records: first + done }
  return { cursor, total: null, done, refused: refused.length }
}

/** Processes the next slice. @throws RequestError bad_request if the file or the mapping is invalid. */
export async function importSlice(at: Upserting, teamId: string, id: string, cursor: ImportCursor | null) {
  const { pass, ...where } = cursor ?? { pass: 'check', place: null, records: 0 }
  return pass === 'check' ? checkSlice(at.tx, teamId, id, where) : storeSlice(at, teamId, id, where)
}

/** Returns an import with its first rejected records. @throws RequestError not_found. */
export async function showImport(tx: Tx, teamId: string, id: string, most: number) {
  const row = await importById(tx, teamId, id)
  if (!row) throw noImport()
  const slices = row.refused === 0 ? [] : await refusingSlices(tx, teamId, id, { after: -1, most })
  return { ...row, refusals: slices.flatMap(({ refused }) => refused).slice(0, most) }
}

const noImport = () => new RequestError('not_found', TEXTS.noImport)

/**
 * Returns the rejected records with their uploaded cells, the row, the reason, and surplus cells at the end. @throws
 * RequestError not_found.
 */
export async function refusedRecords(tx: Tx, teamId: string, id: string) {
  if (!(await importById(tx, teamId, id))) throw noImport()
  const read = importBytes(tx, teamId, id)
  const { header } = (await readSlice(read, null, 1)).table
  async function* rows() {
    for (let after = -1; ; ) {
      const [slice] = await refusingSlices(tx, teamId, id, { after, most: 1 })
      if (!slice) return
      const { table } = await readSlice(read, slice.place, SLICE_RECORDS)
      for (const { at, row, column, message } of slice.refused) {
        const cells = table.records[at]?.cells ?? []
        const reason = column === undefined ? message : `${header[column]} ${message}`
        const named = header.map((_, index) => cells[index] ?? '')
        yield [...named, String(row), reason, ...cells.slice(header.length)]
      }
      after = slice.first_record
    }
  }
  return { header: [...header, ...REFUSED_COLUMNS], rows: rows() }
}
