/**
 * Counts attempts, sends, jobs and reports of this worker for the fleet, in memory only. Labels name channels, kinds
 * of senders and outcomes.
 */
import { performance } from 'node:perf_hooks'
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import type { EventResult } from '../../db/delivery/reports/event-result.ts'
import type { ReportedEvent } from '../../db/messages/apply-reports.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { End, JobName } from '../../db/queue/jobs.ts'
import type { ProcessRole } from '../../db/stats/fleet/fleet.ts'
import type { Outcome } from '../providers/provider.ts'

type Try = {
  job: DeliveryJob
  sender: string
  outcomes: readonly Outcome['kind'][]
  /** From the request to the provider's response. */
  seconds: number
  since: string
  at: Date
}

const toChannel = (job: DeliveryJob): string => job.replace('deliver-', '')

/** Returns the kind of a reported event in its channel's vocabulary. */
function toKind(event: ReportedEvent): string {
  if (event.channel === 'email') return event.kind
  if (event.channel === 'sender') return 'paused'
  return 'status' in event ? event.status : 'changed'
}

/** @param concurrency how many provider calls the worker may have at once. */
export function createWorkerStats(metrics: Metrics, concurrency: number) {
  const senders = new Map<DeliveryJob, string>()
  const completed = new Map<JobName, number>()
  let calling = 0
  let looked = performance.now()
  let counted = performance.now()
  return {
    sendsThrough: (job: DeliveryJob, sender: string): void => void senders.set(job, sender),
    tried({ job, sender, outcomes, seconds, since, at }: Try): void {
      const channel = toChannel(job)
      // The kind only. The rest of a sender's key may name a host.
      const [provider = ''] = sender.split(':')
      calling += seconds
      // A message to several recipients counts once per outcome.
      for (const outcome of new Set(outcomes)) {
        metrics.observe('heliograph_delivery_seconds', { channel, provider, outcome }, seconds)
      }
      if (!outcomes.includes('accepted')) return
      const waited = Math.max(0, (at.getTime() - Date.parse(since)) / 1_000)
      metrics.observe('heliograph_send_seconds', { channel }, waited)
    },
    ended(queue: JobName, end: End['end'], count = 1): void {
      metrics.count('heliograph_jobs_total', { queue, end }, count)
      if (end === 'completed') completed.set(queue, (completed.get(queue) ?? 0) + count)
    },
    /** @param age of the report, in seconds. */
    reported(provider: string, outcome: string, age: number): void {
      metrics.count('heliograph_reports_total', { provider, outcome })
      if (outcome !== 'parked')
        metrics.observe('heliograph_report_lag_seconds', { provider }, Math.max(0, age))
    },
    applied(results: ReadonlyMap<ReportedEvent, EventResult>): void {
      for (const [event, result] of results) {
        if (result.kind === 'ignored' && event.channel === 'whatsapp')
          metrics.count('heliograph_whatsapp_ignored_total', { kind: 'status' })
        if (result.kind !== 'applied') continue
        metrics.count('heliograph_report_events_total', { channel: event.channel, kind: toKind(event) })
      }
    },
    role: {
      senders: () => Object.fromEntries(senders),
      completed() {
        const seconds = Math.max(0.001, (performance.now() - counted) / 1_000)
        const rates = [...completed].map(([queue, count]) => [queue, count / seconds])
        completed.clear()
        counted = performance.now()
        return Object.fromEntries(rates)
      },
      busy() {
        const now = performance.now()
        const share = (calling * 1_000) / (concurrency * Math.max(1, now - looked))
        calling = 0
        looked = now
        return Math.min(1, share)
      },
    } satisfies Pick<ProcessRole, 'senders' | 'completed' | 'busy'>,
  }
}

export type WorkerStats = ReturnType<typeof createWorkerStats>
