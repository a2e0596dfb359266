/**
 * Takes in what a provider has posted: the raw bytes and a job, in the caller's transaction.
 * Promises: once that commits, no report is lost; a repeat (same provider, same event key) stores nothing.
 * Must not look into the bytes: workers/jobs/ingest-report.ts does. Design §7.
 */
import { createHash } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { insertReport, type Provider } from './reports.sql.ts'

/** How long a report is tried again while its message is not found, in milliseconds. */
export const PATIENCE = 3_600_000

/** A report as its hook took it, proved genuine. */
export type TakenReport = { provider: Provider; event_key: string; body: Buffer }

/** The event key of a report that brings no id of its own. */
export const contentKey = (body: Buffer): string => createHash('sha256').update(body).digest('base64url')

/** Stores a report and its job. @returns false when it was a repeat. */
export async function storeReport(
  { tx, queue, now }: { tx: Tx; queue: Pick<Producer, 'enqueue'>; now: Date },
  report: TakenReport,
): Promise<boolean> {
  const id = uuidv7()
  const retry_until = new Date(now.getTime() + PATIENCE)
  if (!(await insertReport(tx, { ...report, id, received_at: now, retry_until }))) return false
  const jobs = await queue.enqueue(tx, 'ingest-report', [{ report_id: id }])
  if (jobs !== 1) throw new Error(`stored report ${id} but ${jobs} jobs`)
  return true
}
