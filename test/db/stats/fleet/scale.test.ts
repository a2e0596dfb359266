/** The scaling signal for given stats, without a database or clock. */

import type { QueueStatus } from '../../../../db/queue/jobs.sql.ts'
import type { Gauges, ProcessRow, SenderStats } from '../../../../db/stats/fleet/fleet.sql.ts'
import { computeScale } from '../../../../db/stats/fleet/scale.ts'
import t from '../../../support/tap.ts'

const queue = (name: string, changes: Partial<QueueStatus> = {}): QueueStatus => ({
  queue: name,
  ready: 0,
  active: 0,
  deferred: 0,
  failed: 0,
  dead: 0,
  oldest_ready_seconds: null,
  ...changes,
})

const process = (kind: 'web' | 'worker', busy = 0, senders: Record<string, string> = {}): ProcessRow => ({
  id: '00000000-0000-7000-8000-000000000000',
  kind,
  host: 'host.test',
  pid: 1,
  queues: ['deliver-email'],
  senders,
  completed: {},
  gauges: { busy } as Gauges,
  seen_at: '2026-11-21T00:00:00.000Z',
  started_at: '2026-11-20T00:00:00.000Z',
  silent_seconds: 0,
})

const sender = (key: string, changes: Partial<SenderStats> = {}): SenderStats => ({
  key,
  name: null,
  paused: 0,
  slowed: 0,
  full: 0,
  ...changes,
})

const late = queue('deliver-email', { ready: 500, active: 20, oldest_ready_seconds: 20 })
const relay = { 'deliver-email': 'smtp:relay.test' }

t.test('a late queue at most doubles the workers', async (t) => {
  const two = [process('worker', 1, relay), process('worker', 1, relay), process('web')]
  const scale = computeScale([late, queue('ingest-report')], two, [sender('smtp:relay.test')])
  t.strictSame(scale, {
    workers: { latency_seconds: 20, ready: 500, active: 20, processes: 2, recommended: 4 },
    queues: {
      'deliver-email': { latency_seconds: 20, ready: 500, active: 20 },
      'ingest-report': { latency_seconds: 0, ready: 0, active: 0 },
    },
  })
})

t.test('adds workers by lateness beyond five seconds, at least one', async (t) => {
  const ten = Array.from({ length: 10 }, () => process('worker', 0, relay))
  const asked = (seconds: number) =>
    computeScale([{ ...late, oldest_ready_seconds: seconds }], ten, []).workers.recommended
  t.strictSame([5, 5.1, 7, 7.2, 60].map(asked), [1, 11, 14, 15, 20])
})

t.test('scales up for a late queue of one worker', async (t) => {
  const two = [process('worker', 0, relay), { ...process('worker'), queues: ['ingest-report'] }]
  t.match(computeScale([late], two, []).workers, { latency_seconds: 20, ready: 500 })
})

t.test('a queue without workers only shows its lateness', async (t) => {
  const whatsapp = queue('deliver-whatsapp', { ready: 3, oldest_ready_seconds: 900 })
  const { workers, queues } = computeScale([whatsapp], [process('worker', 0, relay)], [])
  t.match(workers, { latency_seconds: 0, ready: 0, recommended: 1 })
  t.match(queues, { 'deliver-whatsapp': { latency_seconds: 900 } })
  const { workers: missing } = computeScale([whatsapp], [], [])
  t.match(missing, { latency_seconds: 900 }, 'without any worker it asks for one')
})

t.test("paused or exhausted senders don't scale up", async (t) => {
  for (const held of [{ paused: 1 }, { full: 1 }]) {
    const { workers } = computeScale([late], [process('worker', 0, relay)], [sender('smtp:relay.test', held)])
    t.match(workers, { latency_seconds: 0, ready: 0, active: 20, recommended: 1 })
  }
  const other = computeScale(
    [late],
    [process('worker', 0, relay)],
    [sender('smtp:other.test', { paused: 1 })],
  )
  t.equal(other.workers.latency_seconds, 20, 'another sender’s pause holds nothing of this one')
  const two = [process('worker', 0, relay), process('worker', 0, { 'deliver-email': 'smtp:other.test' })]
  const one = computeScale([late], two, [sender('smtp:other.test', { paused: 1 })])
  t.equal(one.workers.latency_seconds, 20, 'another worker’s sender goes on')
})

t.test("a paused queue doesn't scale up", async (t) => {
  const scale = computeScale([late], [process('worker', 0, relay)], [], new Set(['deliver-email']))
  t.match(scale.workers, { latency_seconds: 0, ready: 0, recommended: 1 })
})

t.test('scales down idle workers only', async (t) => {
  const fleet = (busy: number) => [1, 2, 3, 4].map(() => process('worker', busy, relay))
  t.equal(computeScale([queue('deliver-email')], fleet(0.01), []).workers.recommended, 1)
  t.equal(computeScale([queue('deliver-email')], fleet(0.5), []).workers.recommended, 3)
  const { workers } = computeScale([queue('deliver-email')], fleet(1), [])
  t.equal(workers.recommended, 4, 'no more, as none is late')
  t.equal(computeScale([], [process('worker', 1, relay)], []).workers.recommended, 1)
})

t.test('recommends one worker if none is running', async (t) => {
  t.match(computeScale([late], [], []).workers, { latency_seconds: 20, processes: 0, recommended: 1 })
})
