/**
 * Brings a team's templates up to what the provider lists, through a worker: only workers know the provider.
 * Promises: the request is made in one transaction and awaited outside of it. A template that the provider does not
 * list is left as it is, and named in the answer.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { awaitOutcome } from '../../postgres/replies.ts'
import { idNow } from '../../process/ids.ts'
import { jobEnd } from '../../queue/jobs.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { templateView, type WhatsappTemplateView } from './save-template.ts'
import { refreshTemplates, type TemplateContent, whatsappTemplatesOfTeam } from './templates.sql.ts'
import { TEXTS } from './texts.ts'

/** How long to wait for a worker, in milliseconds. */
const SYNC_TIMEOUT_MS = 30_000

const JOB = 'sync-whatsapp-templates'

type SyncResult = { templates: WhatsappTemplateView[]; missing: string[] }

/**
 * Applies what the provider listed when it was asked. @returns the names of the team's templates that it does not
 * list.
 */
export async function applyListing(
  tx: Tx,
  teamId: string,
  contents: readonly TemplateContent[],
  asked_at: Date,
): Promise<string[]> {
  const listed = new Map(contents.map((content) => [`${content.name}/${content.language}`, content]))
  const known = await refreshTemplates(tx, teamId, [...listed.values()], asked_at)
  const ids = new Set(known.map(({ id }) => id))
  const own = await whatsappTemplatesOfTeam(tx, teamId)
  return own.filter(({ id }) => !ids.has(id)).map(({ name, language }) => `${name} (${language})`)
}

/**
 * Asks a worker to sync, as somebody wishes; the provider knows nothing of a test team's templates, and is not asked.
 * @returns the id of the job; null for a test team. @throws RequestError not_found
 */
export async function requestSync(
  { queue, ...by }: Caller & { queue: Pick<Producer, 'enqueue'> },
  teamId: string,
): Promise<string | null> {
  const { name, test } = await requireTeam(by.tx, teamId)
  if (test) return null
  const sync_id = idNow()
  await queue.enqueue(by.tx, JOB, [{ team_id: teamId, sync_id }])
  await record(by, { team_id: teamId, action: 'whatsapp-template.sync', subject: name, detail: sync_id })
  return sync_id
}

/** Asks for syncs that nobody waits for, of teams that exist. */
export async function requestSyncs(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  teamIds: readonly string[],
): Promise<void> {
  const payloads = teamIds.map((team_id) => ({ team_id, sync_id: idNow() }))
  await queue.enqueue(tx, JOB, payloads)
}

/** What came of a sync; null while no worker has done it. @throws RequestError unavailable when it failed */
async function syncFound(tx: Tx, teamId: string, sync_id: string): Promise<SyncResult | null> {
  const end = await jobEnd(tx, JOB, sync_id)
  if (end?.state === 'completed') {
    const templates = (await whatsappTemplatesOfTeam(tx, teamId)).map(templateView)
    return { templates, missing: end.output?.missing ?? [] }
  }
  if (end?.output?.reason)
    throw new RequestError('unavailable', fill(TEXTS.syncFailed, { reason: end.output.reason }))
  return null
}

/** Waits for a sync that was asked for; without one the templates are as they were. @throws RequestError unavailable */
export async function awaitSync(database: Database, teamId: string, sync_id: string | null) {
  if (sync_id === null)
    return { templates: (await whatsappTemplatesOfTeam(database, teamId)).map(templateView), missing: [] }
  const found = await awaitOutcome(() => syncFound(database, teamId, sync_id), SYNC_TIMEOUT_MS)
  if (found) return found
  throw new RequestError('unavailable', fill(TEXTS.noWorkerSynced, { seconds: SYNC_TIMEOUT_MS / 1_000 }))
}
