/**
 * Syncs a team's templates with the provider's list through a worker, because only workers have access to the
 * provider. The request is made in one transaction and awaited outside it. Templates that the provider doesn't list
 * don't change, and are named in the result.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { requestError } from '../../errors.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { awaitOutcome } from '../../postgres/replies.ts'
import { idNow } from '../../process/ids.ts'
import { jobEnd } from '../../queue/jobs.sql.ts'
import type { Payload } from '../../queue/jobs.ts'
import type { Producer } from '../../queue/producer.ts'
import { numberOfTeam } from './numbers.sql.ts'
import { templateView, type WhatsappTemplateView } from './save-template.ts'
import {
  insertWhatsappTemplate,
  refreshTemplates,
  type TemplateContent,
  teamsToSync,
  whatsappTemplatesOfTeam,
  withUnderscores,
} from './templates.sql.ts'
import { TEXTS } from './texts.ts'

/** How long a caller waits for a worker. */
const SYNC_TIMEOUT_MS = 30_000

/** The job that lists an account's templates. Only workers with its settings can do it for the default number. */
const JOBS = { default: 'sync-whatsapp-templates', other: 'sync-whatsapp-number-templates' } as const

type AvailableTemplate = Pick<TemplateContent, 'name' | 'language' | 'category'> & { status: string }

/** Returns which of the provider's templates a team doesn't have. */
export function withoutOwn(
  available: readonly AvailableTemplate[],
  own: readonly { name: string; language: string }[],
): AvailableTemplate[] {
  const has = new Set(own.map(keyOf))
  return available.filter((each) => !has.has(keyOf(each)))
}

/** `added`: the ID of the new template, null if the account has no such template. */
export type SyncOutput = { missing: string[]; available?: AvailableTemplate[]; added?: string | null }

type SyncPayload = Payload<typeof JOBS.default>

const keyOf = ({ name, language }: { name?: string | undefined; language?: string | undefined }): string =>
  `${name}/${withUnderscores(language ?? '')}`

/**
 * Applies the list of an account, and the sync's `wish`. @param account_id null: the account of the default number.
 */
export async function applyListing(
  tx: Tx,
  { team_id, wish, name, language }: SyncPayload,
  contents: readonly TemplateContent[],
  { asked_at, account_id }: { asked_at: Date; account_id: string | null },
): Promise<SyncOutput> {
  // The team has another account now, which has its own sync.
  if (!(await hasAccount(tx, team_id, account_id))) return { missing: [] }
  const listed = [...new Map(contents.map((each) => [`${each.name}/${each.language}`, each])).values()]
  const wanted = wish === 'add' && listed.find((each) => keyOf(each) === keyOf({ name, language }))
  if (wanted) await insertWhatsappTemplate(tx, team_id, idNow(), wanted, asked_at)
  const known = await refreshTemplates(tx, team_id, listed, { askedAt: asked_at, account_id })
  const ids = new Set(known.map(({ id }) => id))
  const own = await whatsappTemplatesOfTeam(tx, team_id)
  const missing = own.filter(({ id }) => !ids.has(id)).map((each) => `${each.name} (${each.language})`)
  if (wish === undefined) return { missing }
  const has = new Map(own.map((each) => [keyOf(each), each.id]))
  return { missing, available: listed.map(toAvailable), added: (wanted && has.get(keyOf(wanted))) || null }
}

const toAvailable = ({ name, language, category, status }: TemplateContent): AvailableTemplate => ({
  ...{ name, language, category, status },
})

/** True if a team's number belongs to the account. Null: if the team has the default number. */
async function hasAccount(tx: Tx, teamId: string, account_id: string | null): Promise<boolean> {
  const own = await numberOfTeam(tx, teamId)
  if (own === null) return false
  return account_id === null ? own.is_default : !own.is_default && own.account_id === account_id
}

const jobFor = async (tx: Tx, teamId: string) =>
  (await numberOfTeam(tx, teamId))?.is_default === false ? JOBS.other : JOBS.default

type Asking = Caller & { queue: Pick<Producer, 'enqueue'> }

/**
 * Requests the list from a worker. @returns the ID of the job. Null for a test team. @throws RequestError not_found
 */
async function ask(
  { queue, ...by }: Asking,
  teamId: string,
  wish: Pick<SyncPayload, 'wish' | 'name' | 'language'> = {},
): Promise<{ name: string; sync_id: string | null }> {
  const { name, test } = await requireTeam(by.tx, teamId)
  if (test) return { name, sync_id: null }
  const sync_id = idNow()
  await queue.enqueue(by.tx, await jobFor(by.tx, teamId), [{ team_id: teamId, sync_id, ...wish }])
  return { name, sync_id }
}

/** Requests a sync from a worker. @returns the ID of the job. Null for a test team. @throws RequestError not_found */
export async function requestSync(by: Asking, teamId: string): Promise<string | null> {
  const { name, sync_id } = await ask(by, teamId, { wish: 'available' })
  if (sync_id !== null)
    await record(by, { team_id: teamId, action: 'whatsapp-template.sync', subject: name, detail: sync_id })
  return sync_id
}

/** Requests the templates of a team's account. @returns as `requestSync` does. */
export const requestAvailable = async (by: Asking, teamId: string): Promise<string | null> =>
  (await ask(by, teamId, { wish: 'available' })).sync_id

/**
 * Requests adding a template of the team's account. @returns as `requestSync` does. @throws RequestError bad_request
 */
export async function requestAdd(by: Asking, teamId: string, wanted: { name: string; language: string }) {
  const own = await whatsappTemplatesOfTeam(by.tx, teamId)
  if (own.some((each) => keyOf(each) === keyOf(wanted)))
    throw requestError('bad_request', TEXTS.whatsappTemplateExists, wanted)
  const { sync_id } = await ask(by, teamId, { wish: 'add', ...wanted })
  await record(by, {
    team_id: teamId,
    action: 'whatsapp-template.add',
    subject: wanted.name,
    detail: wanted.language,
  })
  return sync_id
}

/** Requests background syncs of teams that exist. */
export async function requestSyncs(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  teamIds: readonly string[],
): Promise<void> {
  for (const team_id of teamIds)
    await queue.enqueue(tx, await jobFor(tx, team_id), [{ team_id, sync_id: idNow() }])
}

/** Requests a sync for each live team with templates whose account is known. @returns how many. */
export async function requestAllSyncs(at: { tx: Tx; queue: Pick<Producer, 'enqueue'> }): Promise<number> {
  const teams = await teamsToSync(at.tx)
  await requestSyncs(at, teams)
  return teams.length
}

/**
 * Returns the result of a team's sync. Null until a worker has done it. @throws RequestError unavailable if it failed
 */
export async function syncFound(tx: Tx, teamId: string, sync_id: string): Promise<SyncOutput | null> {
  const end = (await jobEnd(tx, JOBS.default, sync_id)) ?? (await jobEnd(tx, JOBS.other, sync_id))
  if (end?.team_id !== teamId) return null
  if (end.state === 'completed') return { missing: [], ...end.output }
  if (end.output?.reason) throw requestError('unavailable', TEXTS.syncFailed, { reason: end.output.reason })
  return null
}

/** Waits for a requested sync. @throws RequestError unavailable */
async function awaitOutcomeOfSync(database: Database, teamId: string, sync_id: string): Promise<SyncOutput> {
  const found = await awaitOutcome(() => syncFound(database, teamId, sync_id), SYNC_TIMEOUT_MS)
  if (found) return found
  throw requestError('unavailable', TEXTS.noWorkerSynced, { seconds: SYNC_TIMEOUT_MS / 1_000 })
}

/** Waits for a sync, and returns the templates. Without one they haven't changed. @throws RequestError unavailable */
export async function awaitSync(database: Database, teamId: string, sync_id: string | null) {
  const missing = sync_id === null ? [] : (await awaitOutcomeOfSync(database, teamId, sync_id)).missing
  return { templates: (await whatsappTemplatesOfTeam(database, teamId)).map(templateView), missing }
}

/** Waits for the list of available templates. @throws RequestError unavailable */
export const awaitAvailable = async (database: Database, teamId: string, sync_id: string | null) =>
  sync_id === null ? [] : ((await awaitOutcomeOfSync(database, teamId, sync_id)).available ?? [])

/** Waits for the added template. @throws RequestError unavailable, not_found if the account has no such template */
export async function awaitAdded(
  database: Database,
  teamId: string,
  { sync_id, ...wanted }: { sync_id: string | null; name: string; language: string },
): Promise<WhatsappTemplateView> {
  const added = sync_id === null ? null : (await awaitOutcomeOfSync(database, teamId, sync_id)).added
  const row = (await whatsappTemplatesOfTeam(database, teamId)).find(({ id }) => id === added)
  if (row) return templateView(row)
  throw requestError('not_found', TEXTS.notAvailable, wanted)
}
