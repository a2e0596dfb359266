/**
 * POST /v1/contacts/bulk: checks the call's shape and size, stores it with its job in one transaction, and
 * waits for the worker's result. The worker validates the items (db/audience/contacts/upsert.ts). The call is
 * processed even if no worker is available in time, or the client disconnects. It can be repeated safely.
 */
import { toAccount } from '../../db/accounts/teams/limits.ts'
import { LimitReached } from '../../db/accounts/teams/rate-limit.ts'
import { readAccountRow } from '../../db/accounts/teams/teams.sql.ts'
import { insertUpsert, type UpsertResult, upsertResult } from '../../db/audience/contacts/upserts.sql.ts'
import { errorFrom, type RequestError, Unavailable } from '../../db/errors.ts'
import { idAt } from '../../db/process/ids.ts'
import { keyOnly } from '../http/auth.ts'
import { ABOUT } from './about.ts'
import { batchAnswer } from './batch.ts'
import { bulkBody } from './contact-bodies.ts'
import { teamRoute, type V1Deps, type V1Route } from './deps.ts'
import { TEXTS } from './texts.ts'

const RETRY_AFTER_S = 5

type Call = { teamId: string; bytes: Buffer; release(): void; now: Date }

/** Lets a worker process the call. @throws RequestError unavailable without a result in time */
async function carriedOut(deps: V1Deps, call: Call): Promise<UpsertResult> {
  const { teamId } = call
  const { database, queue, replies, upsertWait: timeout } = deps
  // From the database's clock, because a team's calls are processed in the order of their IDs, across web
  // processes.
  const id = idAt(deps.clock())
  const result = await replies.ask(id, {
    async send() {
      await database.transaction(async (tx) => {
        await insertUpsert(tx, teamId, { id, body: call.bytes }, call.now)
        const jobs = await queue.enqueue(tx, 'upsert-contacts', [{ team_id: teamId, upsert_id: id }])
        if (jobs !== 1) throw new Error('stored an upsert without its job')
      })
      // Not needed while the worker processes the call.
      call.bytes = Buffer.alloc(0)
      call.release()
    },
    read: () => upsertResult(database, teamId, id),
    timeout,
  })
  if (result) return result
  throw new Unavailable('bulk_pending', TEXTS.bulkPending, RETRY_AFTER_S)
}

/** Adds the team's limits to an error about its quota. They aren't part of the stored result. */
async function withLimits(
  { database }: V1Deps,
  teamId: string,
  refusal: RequestError,
): Promise<RequestError> {
  const row = refusal.code === 'quota_exceeded' ? await readAccountRow(database, teamId) : null
  return row === null ? refusal : new LimitReached(toAccount(row), refusal)
}

export const bulkRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/contacts/bulk',
    about: ABOUT.upsertContacts,
    access: keyOnly('contacts:write'),
    heavy: true,
    body: bulkBody,
    async handle({ body, principal, release, now }, deps) {
      if (body.length === 0) return batchAnswer([], deps.metrics)
      const call = { teamId: principal.team_id, bytes: body.bytes, release, now }
      body.bytes = Buffer.alloc(0)
      const result = await carriedOut(deps, call)
      if ('refusal' in result) throw await withLimits(deps, principal.team_id, errorFrom(result.refusal))
      const items = result.items.map((item) => (typeof item === 'string' ? item : errorFrom(item)))
      return batchAnswer(items, deps.metrics)
    },
  }),
]
