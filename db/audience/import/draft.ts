/**
 * Drafts of imports: an uploaded file is stored, previewed, tested, then imported or discarded. A team can have a few
 * drafts at once, for a day each. Concurrent uploads can exceed that number. Previews and tests only read the start
 * of the file, and change nothing. The import uses the mapping that the user saw.
 */

import { RequestError, requestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { assertSeen, markOf } from '../../validation/mark.ts'
import { isUuid, textFault } from '../../validation/strings.ts'
import { holdTopics } from '../contacts/topics.sql.ts'
import { tryUpsert } from '../contacts/upsert.ts'
import { TEXTS } from '../texts.ts'
import { type CsvTable, countRecords, type ReadBytes, readSlice } from './csv.ts'
import {
  checkTotal,
  MAX_RECORDS,
  readRecords,
  refusedAmong,
  SLICE_RECORDS,
  suppressionOutcomes,
} from './import.ts'
import {
  countDrafts,
  deleteImportDraft,
  endDraft,
  type ImportRow,
  importById,
  importBytes,
  importLength,
  insertImport,
  lastMapping,
  type Made,
  mapDraft,
  type RefusedRecord,
} from './imports.sql.ts'
import { checkMapping, type Mapping, mappingFor, type Purpose } from './mapping.ts'

/** Drafts per team. With the form's size limit, that is 40 MB. */
const MAX_DRAFTS = 5

/** @param source the file's text. @param encoding its original encoding. */
type ImportUpload = { name: string; source: string; encoding: string; purpose: Purpose }

/** The first records of a file. `whole` is true if the file has no others. */
type FirstPart = { table: CsvTable; separator: string; whole: boolean }

async function readFirstPart(read: ReadBytes): Promise<FirstPart> {
  const { table, separator, place } = await readSlice(read, null, SLICE_RECORDS)
  return { table, separator, whole: place === null }
}

const noDraft = () => new RequestError('not_found', TEXTS.noUpload)

const topicsIn = ({ topic_ids, columns }: Mapping): string[] => [
  ...topic_ids,
  ...columns.flatMap((one) => (one.to === 'topic' ? [one.id] : [])),
]

/** Locks the topics of a mapping. @throws RequestError bad_request for an invalid mapping or a deleted topic. */
async function holdMapping(tx: Tx, teamId: string, mapping: Mapping): Promise<void> {
  checkMapping(mapping)
  const topics = topicsIn(mapping)
  const known = await holdTopics(tx, teamId, topics.filter(isUuid))
  if (topics.some((topic) => !known.has(topic))) throw new RequestError('bad_request', TEXTS.chosenTopicGone)
}

/** Returns the mapping of the last import with the same columns, without deleted topics, or null. */
async function chosenBefore(tx: Tx, teamId: string, guess: Mapping): Promise<Mapping | null> {
  const last = await lastMapping(tx, teamId, guess)
  // Older versions imported consent columns as properties.
  if (!last || (guess.no && !last.no)) return null
  const known = await holdTopics(tx, teamId, topicsIn(last))
  return {
    ...last,
    topic_ids: last.topic_ids.filter((id) => known.has(id)),
    columns: last.columns.map((one) => (one.to === 'topic' && !known.has(one.id) ? { to: 'ignore' } : one)),
  }
}

/**
 * Stores an uploaded file. Reuses the mapping of the last file with the same columns.
 * @returns the draft's ID. @throws RequestError bad_request if the file can't be imported.
 */
export async function storeDraft(
  { tx, now }: At,
  teamId: string,
  { name, source, encoding, purpose }: ImportUpload,
  actor: string,
): Promise<string> {
  const fault = textFault([name, source])
  if (fault) throw requestError('bad_request', TEXTS.badFile, { problem: fault.problem })
  const bytes = Buffer.from(source)
  const read: ReadBytes = async (at, length) => bytes.subarray(at, at + length)
  const { table } = await readFirstPart(read)
  const records = countRecords(bytes, table.header, MAX_RECORDS + 1)
  checkTotal(records, true)
  if ((await countDrafts(tx, teamId)) >= MAX_DRAFTS)
    throw requestError('bad_request', TEXTS.tooManyUploads, { most: MAX_DRAFTS })
  const id = idNow()
  const guess = mappingFor(table.header, purpose)
  const mapping = (await chosenBefore(tx, teamId, guess)) ?? guess
  const row = { id, file_name: name.slice(0, 200), bytes, encoding, mapping, records, created_by: actor }
  await insertImport(tx, teamId, row, now)
  return id
}

export type Draft = ImportRow & FirstPart & { bytes: number }

/** Returns a draft with its first records. @throws RequestError not_found. */
export async function showDraft(tx: Tx, teamId: string, id: string): Promise<Draft> {
  const row = await importById(tx, teamId, id)
  if (!row?.draft) throw noDraft()
  const bytes = await importLength(tx, teamId, id)
  return { ...row, ...(await readFirstPart(importBytes(tx, teamId, id))), bytes }
}

/** Changes the mapping of a draft. @throws RequestError bad_request for an invalid mapping, not_found. */
export async function setMapping(tx: Tx, teamId: string, id: string, mapping: Mapping): Promise<void> {
  await holdMapping(tx, teamId, mapping)
  if (!(await mapDraft(tx, teamId, id, mapping))) throw noDraft()
}

/** A prediction for the first records. `refusals` are those that would be rejected. */
export type Trial = Made & { tried: number; refusals: RefusedRecord[] }

async function trySuppressions(tx: Tx, teamId: string, read: Parameters<typeof suppressionOutcomes>[2]) {
  const { outcomes, created } = await suppressionOutcomes(tx, teamId, read)
  const taken = outcomes.filter((outcome) => typeof outcome === 'string')
  const all = new Set(taken).size
  const made = { created: created.length, updated: all - created.length, repeated: taken.length - all }
  return { outcomes, ...made }
}

/** Tests a draft on its first records. @throws RequestError bad_request for an invalid mapping. */
export async function tryDraft(
  at: At & { secrets: Pick<Secrets, 'signatures'> },
  teamId: string,
  { table: { records }, mapping }: Draft,
): Promise<Trial> {
  checkMapping(mapping)
  const read = readRecords(records, mapping)
  const items = read.map(({ item }) => item)
  const { outcomes, ...made } = mapping.suppress
    ? await trySuppressions(at.tx, teamId, read)
    : await tryUpsert(at, teamId, items, mapping)
  return { tried: records.length, ...made, refusals: refusedAmong(read, outcomes, mapping) }
}

/**
 * Turns a draft into an import, in the transaction that starts its job.
 * @param seen the hash of the mapping that the user saw, or null for no check.
 * @throws RequestError bad_request for an invalid mapping, not_found, invalid_state if the mapping has changed.
 */
export async function startDraft(tx: Tx, teamId: string, id: string, seen: string | null): Promise<void> {
  const row = await importById(tx, teamId, id)
  if (!row?.draft) throw noDraft()
  // Topics before the draft, as in `setMapping`.
  await holdMapping(tx, teamId, row.mapping)
  const mapping = await endDraft(tx, teamId, id)
  if (!mapping) throw noDraft()
  const mark = markOf(mapping)
  for (const each of [markOf(row.mapping), seen]) assertSeen(each, mark, TEXTS.columnsChanged)
}

/** @throws RequestError not_found. */
export async function discardImport(tx: Tx, teamId: string, id: string): Promise<void> {
  if (!(await deleteImportDraft(tx, teamId, id))) throw noDraft()
}
