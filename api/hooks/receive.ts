/**
 * What the hooks share: a report that was proved genuine is stored with its job, and answered after the commit that it
 * shares with those that came meanwhile (sends/accepts.ts). Must not know a provider.
 */
import type { TakenReport } from '../../db/delivery/reports/store.ts'
import type { Answer } from '../http/errors.ts'
import type { HookDeps } from './deps.ts'

/** Stores a report that has been proved genuine. A repeat is taken as well as the first. */
export async function takeReport(
  { accepts, metrics }: Pick<HookDeps, 'accepts' | 'metrics'>,
  report: TakenReport,
): Promise<Answer> {
  const outcome = await storeReport({ accepts, metrics }, report)
  return { status: 200, body: { status: outcome === 'stored' ? 'taken' : 'repeated' } }
}

/** Stores a report. A repeat has been processed by then, and is counted. */
export async function storeReport(
  { accepts, metrics }: Pick<HookDeps, 'accepts' | 'metrics'>,
  report: TakenReport,
): ReturnType<HookDeps['accepts']['report']> {
  const outcome = await accepts.report(report)
  if (outcome === 'repeated')
    metrics.count('heliograph_reports_total', { provider: report.provider, outcome })
  return outcome
}
