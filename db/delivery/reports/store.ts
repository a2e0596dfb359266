/**
 * Stores posted reports in the caller's transaction: the raw bytes, and shared jobs. A repeat (same provider
 * and event key) stores nothing. workers/jobs/ingest-report.ts parses the content.
 */
import { createHash } from 'node:crypto'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Payload } from '../../queue/jobs.ts'
import type { Producer } from '../../queue/producer.ts'
import { claimTokens, type OneTimeToken } from './relay-tokens.sql.ts'
import { insertReports, type Provider } from './reports.sql.ts'

/** How long a report is tried again while its message is not found, in milliseconds. */
export const UNMATCHED_TRIES_MS = 3_600_000

/** A verified report from a hook. `token`: the token that verified it, if it is valid for one body only. */
export type TakenReport = {
  provider: Provider
  event_key: string
  body: Buffer
  received_at: Date
  token?: OneTimeToken | null
}

/** The result for a report. `token_used`: its token was used with another body before, so nothing is stored. */
export type ReportOutcome = 'stored' | 'repeated' | 'token_used'

/** Returns the SHA-256 of a body in base64url, the event key of a report without its own ID. */
export const contentKey = (body: Buffer | string): string =>
  createHash('sha256').update(body).digest('base64url')

/** The most reports of one job. With more IDs, PostgreSQL would store the payload apart from its row. */
const REPORTS_PER_JOB = 40

/** Returns the payloads of shared jobs for these reports. */
const toPayloads = (ids: readonly string[]): Payload<'ingest-report'>[] =>
  Array.from({ length: Math.ceil(ids.length / REPORTS_PER_JOB) }, (_, at) => {
    const reports = ids.slice(at * REPORTS_PER_JOB, (at + 1) * REPORTS_PER_JOB)
    const [report_id] = reports
    return report_id !== undefined && reports.length === 1 ? { report_id } : { report_id: idNow(), reports }
  })

/** Stores reports and their jobs. No two reports may have the same token. */
export async function storeReports(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  reports: readonly TakenReport[],
): Promise<ReportOutcome[]> {
  const tokens = reports.flatMap(({ token }) => token ?? [])
  const used = await claimTokens(tx, tokens)
  const rows = reports.map(({ token, ...report }) => ({
    ...report,
    id: idNow(),
    retry_until: new Date(report.received_at.getTime() + UNMATCHED_TRIES_MS),
    is_used: token ? used.has(token.digest) : false,
  }))
  const genuine = rows.flatMap(({ is_used, ...report }) => (is_used ? [] : [report]))
  const stored = await insertReports(tx, genuine)
  const payloads = toPayloads(genuine.flatMap(({ id }) => (stored.has(id) ? [id] : [])))
  const jobs = await queue.enqueue(tx, 'ingest-report', payloads)
  if (jobs !== payloads.length) throw new Error(`stored ${jobs} of ${payloads.length} jobs of reports`)
  return rows.map(({ id, is_used }) => (is_used ? 'token_used' : stored.has(id) ? 'stored' : 'repeated'))
}
