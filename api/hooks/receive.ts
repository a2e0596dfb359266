/**
 * Stores the reports of all hooks. A verified report is stored with its job. The response follows the commit,
 * which reports that arrive at the same time share (sends/accepts.ts).
 */
import type { TakenReport } from '../../db/delivery/reports/store.ts'
import type { Answer } from '../http/errors.ts'
import type { HookDeps } from './hook.ts'

/** Stores a verified report. A repeat is accepted like the first one. */
export async function takeReport(
  { accepts, metrics }: Pick<HookDeps, 'accepts' | 'metrics'>,
  report: TakenReport,
): Promise<Answer> {
  const outcome = await storeReport({ accepts, metrics }, report)
  return { status: 200, body: { status: outcome === 'stored' ? 'taken' : 'repeated' } }
}

/** Stores a report. A repeat is only counted. */
export async function storeReport(
  { accepts, metrics }: Pick<HookDeps, 'accepts' | 'metrics'>,
  report: TakenReport,
): ReturnType<HookDeps['accepts']['report']> {
  const outcome = await accepts.report(report)
  if (outcome === 'repeated')
    metrics.count('heliograph_reports_total', { provider: report.provider, outcome })
  return outcome
}
