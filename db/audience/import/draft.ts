/**
 * Drafts of imports: an uploaded file is stored, previewed, checked, then imported or discarded. A file that
 * can't be imported is rejected at the upload, and nothing is stored. A team has a few drafts at once
 * (concurrent uploads may exceed that), each for a day. Previews and checks only read the start of the file,
 * and change nothing. The import uses the mapping that was shown.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
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

/** How many files of a team wait for a person at once; with the form's bound, 40 MB. */
const MAX_DRAFTS = 5

/** @param source the file's text. @param encoding how it was encoded. */
type ImportUpload = { name: string; source: string; encoding: string; purpose: Purpose }

/** The first records of a file. `whole`: these are all. */
type FirstPart = { table: CsvTable; separator: string; whole: boolean }

async function firstPartOf(read: ReadBytes): Promise<FirstPart> {
  const { table, separator, place } = await readSlice(read, null, SLICE_RECORDS)
  return { table, separator, whole: place === null }
}

const noDraft = () => new RequestError('not_found', TEXTS.noUpload)

const topicsIn = ({ topic_ids, columns }: Mapping): string[] => [
  ...topic_ids,
  ...columns.flatMap((one) => (one.to === 'topic' ? [one.id] : [])),
]

/** @throws RequestError bad_request for a mapping that cannot be, or with a topic that is gone. */
async function holdMapping(tx: Tx, teamId: string, mapping: Mapping): Promise<void> {
  checkMapping(mapping)
  const topics = topicsIn(mapping)
  const known = await holdTopics(tx, teamId, topics.filter(isUuid))
  if (topics.some((topic) => !known.has(topic))) throw new RequestError('bad_request', TEXTS.chosenTopicGone)
}

/** What was chosen for the last file of the same columns, without topics that are gone. Null without one. */
async function chosenBefore(tx: Tx, teamId: string, guess: Mapping): Promise<Mapping | null> {
  const last = await lastMapping(tx, teamId, guess)
  // A version without consent made the columns properties.
  if (!last || (guess.no && !last.no)) return null
  const known = await holdTopics(tx, teamId, topicsIn(last))
  return {
    ...last,
    topic_ids: last.topic_ids.filter((id) => known.has(id)),
    columns: last.columns.map((one) => (one.to === 'topic' && !known.has(one.id) ? { to: 'ignore' } : one)),
  }
}

/**
 * Keeps an uploaded file, with what was chosen for the last one of the same columns: refused records come back so.
 * @returns its id. @throws RequestError bad_request when it cannot be imported at all.
 */
export async function storeDraft(
  { tx, now }: At,
  teamId: string,
  { name, source, encoding, purpose }: ImportUpload,
  actor: string,
): Promise<string> {
  const fault = textFault([name, source])
  if (fault) throw new RequestError('bad_request', fill(TEXTS.badFile, { problem: fault.problem }))
  const bytes = Buffer.from(source)
  const read: ReadBytes = async (at, length) => bytes.subarray(at, at + length)
  const { table } = await firstPartOf(read)
  const records = countRecords(bytes, table.header, MAX_RECORDS + 1)
  checkTotal(records, true)
  if ((await countDrafts(tx, teamId)) >= MAX_DRAFTS)
    throw new RequestError('bad_request', fill(TEXTS.tooManyUploads, { most: MAX_DRAFTS }))
  const id = idNow()
  const guess = mappingFor(table.header, purpose)
  const mapping = (await chosenBefore(tx, teamId, guess)) ?? guess
  const row = { id, file_name: name.slice(0, 200), bytes, encoding, mapping, records, created_by: actor }
  await insertImport(tx, teamId, row, now)
  return id
}

export type Draft = ImportRow & FirstPart & { bytes: number }

/** A draft with its first records. @throws RequestError not_found. */
export async function showDraft(tx: Tx, teamId: string, id: string): Promise<Draft> {
  const row = await importById(tx, teamId, id)
  if (!row?.draft) throw noDraft()
  const bytes = await importLength(tx, teamId, id)
  return { ...row, ...(await firstPartOf(importBytes(tx, teamId, id))), bytes }
}

/** Says what a draft's columns become. @throws RequestError bad_request for what cannot be, not_found. */
export async function setMapping(tx: Tx, teamId: string, id: string, mapping: Mapping): Promise<void> {
  await holdMapping(tx, teamId, mapping)
  if (!(await mapDraft(tx, teamId, id, mapping))) throw noDraft()
}

/** What would become of the first records. `refused`: those that would not be taken, by their rows. */
export type Trial = Made & { tried: number; refusals: RefusedRecord[] }

async function trySuppressions(tx: Tx, teamId: string, read: Parameters<typeof suppressionOutcomes>[2]) {
  const { outcomes, created } = await suppressionOutcomes(tx, teamId, read)
  const taken = outcomes.filter((outcome) => typeof outcome === 'string')
  const all = new Set(taken).size
  const made = { created: created.length, updated: all - created.length, repeated: taken.length - all }
  return { outcomes, ...made }
}

/** Tries a draft on its first records. @throws RequestError bad_request for a mapping that cannot be. */
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
 * Makes a draft an import: to be called where its work is begun. @param seen the mark of the mapping that somebody has
 * seen; null: of none. @throws RequestError bad_request for a mapping that cannot be, or cannot be any more; not_found;
 * invalid_state when it is another one by now.
 */
export async function startDraft(tx: Tx, teamId: string, id: string, seen: string | null): Promise<void> {
  const row = await importById(tx, teamId, id)
  if (!row?.draft) throw noDraft()
  // Topics before the draft, as where its columns are chosen.
  await holdMapping(tx, teamId, row.mapping)
  const mapping = await endDraft(tx, teamId, id)
  if (!mapping) throw noDraft()
  const mark = markOf(mapping)
  for (const each of [markOf(row.mapping), seen]) assertSeen(each, mark, TEXTS.columnsChanged)
}

/** Forgets a draft. @throws RequestError not_found. */
export async function discardImport(tx: Tx, teamId: string, id: string): Promise<void> {
  if (!(await deleteImportDraft(tx, teamId, id))) throw noDraft()
}
