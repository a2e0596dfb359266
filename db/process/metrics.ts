/**
 * Figures for Prometheus: how requests fare, how full the queues are, and the process's own.
 * Promises: labels have few values (route patterns, codes, queue names), never ids or addresses. No state at import.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

const STATES = ['ready', 'active', 'deferred', 'failed', 'dead'] as const

/** How full a queue is, as `queueStatus` tells it. */
type QueueFigures = Record<(typeof STATES)[number], number> & {
  queue: string
  oldest_ready_seconds: number | null
}

export type Metrics = {
  /** Counts an answered request. @param seconds from its arrival to its answer. */
  observeRequest(labels: { method: string; route: string; status: number }, seconds: number): void
  /** Counts mail to the bounce domain that was dropped: nothing in it says that we sent what it is about. */
  countDroppedMail(): void
  /** Everything in the text format, with the queues as they stand now. */
  render(queues: readonly QueueFigures[]): Promise<{ content_type: string; text: string }>
}

/** Makes a process's figures. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'heliograph_' })
  const requests = new Histogram({
    name: 'heliograph_http_request_seconds',
    help: 'Answered requests, by how long they took.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30],
    registers: [registry],
  })
  const dropped = new Counter({
    name: 'heliograph_reports_dropped_total',
    help: 'Mail to the bounce domain without a return address of ours, not stored.',
    registers: [registry],
  })
  const jobs = new Gauge({
    name: 'heliograph_queue_jobs',
    help: 'Jobs of a queue, by state; dead are its dead letters.',
    labelNames: ['queue', 'state'],
    registers: [registry],
  })
  const oldest = new Gauge({
    name: 'heliograph_queue_oldest_ready_seconds',
    help: 'For how long the oldest ready job has waited: when it stays up, add workers.',
    labelNames: ['queue'],
    registers: [registry],
  })
  return {
    observeRequest: (labels, seconds) => requests.observe(labels, seconds),
    countDroppedMail: () => dropped.inc(),
    async render(queues) {
      for (const status of queues) {
        for (const state of STATES) jobs.set({ queue: status.queue, state }, status[state])
        oldest.set({ queue: status.queue }, status.oldest_ready_seconds ?? 0)
      }
      return { content_type: registry.contentType, text: await registry.metrics() }
    },
  }
}
