/** Checks through a worker whether the email provider is reachable and would accept our mail. Sends no message. */

import { type By, record } from '../../accounts/audit/record.ts'
import { requestError } from '../../errors.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { awaitOutcome } from '../../postgres/replies.ts'
import { idNow } from '../../process/ids.ts'
import { jobEnd } from '../../queue/jobs.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { TEXTS } from '../texts.ts'

/** How long to wait for a worker, in milliseconds. */
const CHECK_TIMEOUT_MS = 45_000

const JOB = 'check-email'

/** The result of a worker. `fault`: the provider's reason for rejecting mail, or null. */
export type Check = { sender: string; fault: string | null }

/** Asks a worker to check. @returns the id of its job. */
export async function requestCheck({ queue, ...by }: By & { queue: Pick<Producer, 'enqueue'> }) {
  const check_id = idNow()
  await queue.enqueue(by.tx, JOB, [{ check_id }])
  await record(by, { team_id: null, action: 'sender.check', subject: check_id })
  return check_id
}

/** Returns the result of a check. Null until a worker has done it. */
export async function checkFound(tx: Tx, id: string): Promise<Check | null> {
  const end = await jobEnd(tx, JOB, id)
  if (end?.state !== 'completed' || end.output?.sender === undefined) return null
  return { sender: end.output.sender, fault: end.output.fault ?? null }
}

/** Waits for a requested check. @throws RequestError unavailable */
export async function awaitCheck(database: Database, id: string): Promise<Check> {
  const found = await awaitOutcome(() => checkFound(database, id), CHECK_TIMEOUT_MS)
  if (found) return found
  throw requestError('unavailable', TEXTS.noWorkerChecked, { seconds: CHECK_TIMEOUT_MS / 1_000 })
}
