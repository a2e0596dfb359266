/** What the API counts for the fleet's figures, besides its requests: what became of sends, and refusals. */
import type { ChannelName } from '../db/channels/channels.sql.ts'
import { Refusal } from '../db/errors.ts'
import type { Metrics } from '../db/process/metrics.ts'

/** Counts accepts and replays. Refusals are counted where they are answered. */
export function countSends(
  metrics: Metrics,
  channel: ChannelName,
  outcomes: readonly { kind: 'stored' | 'replayed' | 'refused'; rows?: readonly unknown[] }[],
): void {
  for (const { kind, rows = [1] } of outcomes) {
    if (kind === 'stored') metrics.count('heliograph_accepted_total', { channel }, rows.length)
    if (kind === 'replayed') metrics.count('heliograph_replayed_total', { channel })
  }
}

/** Counts the refusals among an answer's items, or the one that is the answer. */
export function countRefusals(metrics: Metrics, outcomes: readonly unknown[]): void {
  for (const outcome of outcomes) {
    if (outcome instanceof Refusal) metrics.count('heliograph_refused_total', { code: outcome.code })
  }
}
