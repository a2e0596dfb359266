/** Counts the results of sends for the metrics. Rejections are counted in http/rejections.ts. */
import type { ChannelName } from '../../db/channels/list.ts'
import type { Metrics } from '../../db/process/metrics.ts'

type Outcome = { kind: 'stored' | 'replayed' | 'refused'; rows?: readonly unknown[] }

/** Counts accepted sends and replays after their commit. Rejections are counted with their response. */
export function countSends<O extends Outcome>(
  metrics: Metrics,
  channel: ChannelName,
  outcomes: readonly O[],
): readonly O[] {
  for (const { kind, rows = [1] } of outcomes) {
    if (kind === 'stored') metrics.count('heliograph_accepted_total', { channel }, rows.length)
    if (kind === 'replayed') metrics.count('heliograph_replayed_total', { channel })
  }
  return outcomes
}
