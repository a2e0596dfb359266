/**
 * Defines a process's metrics with their labels and buckets, and collects the additions since the last read. Counting
 * only adds in memory. Labels have few values (route patterns, codes, queue names), never IDs or addresses.
 */

/**
 * A metric with buckets (in seconds) is a histogram. Rename it if its buckets change. `optional` labels can be
 * absent.
 */
type Metric = {
  help: string
  labels: readonly string[]
  optional?: readonly string[]
  buckets?: readonly number[]
}

const CALLS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30] as const
const DELIVERIES = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600] as const
const WAITS = [0.1, 0.5, 1, 3, 10, 30, 60, 300, 1_800, 7_200, 86_400] as const

export const METRICS = {
  heliograph_http_request_seconds: {
    help: 'HTTP requests by status and duration.',
    labels: ['method', 'route', 'status'],
    buckets: CALLS,
  },
  heliograph_accepted_total: { help: 'Messages accepted for delivery.', labels: ['channel'] },
  heliograph_replayed_total: {
    help: 'Requests and batch items with an idempotency key that was already stored.',
    labels: ['channel'],
  },
  heliograph_rejected_total: {
    help: 'Rejected requests and batch items, by error code. `unavailable` also has a reason.',
    labels: ['code'],
    optional: ['reason'],
  },
  heliograph_delivery_seconds: {
    help: 'Attempts to send a message to its provider, by outcome and duration.',
    labels: ['channel', 'provider', 'outcome'],
    buckets: DELIVERIES,
  },
  heliograph_send_seconds: {
    help: 'Time from acceptance or requeueing until the provider accepted the message.',
    labels: ['channel'],
    buckets: WAITS,
  },
  heliograph_reports_total: {
    help: 'Processed delivery reports by outcome: applied, repeated, ignored, auto_reply, parked.',
    labels: ['provider', 'outcome'],
  },
  heliograph_whatsapp_ignored_total: {
    help: "WhatsApp webhook entries that weren't stored, by kind. `message`, `status` and `event` need no action. `hook` counts entries that a number's own hook received for another number or account.",
    labels: ['kind'],
  },
  heliograph_report_events_total: {
    help: 'Applied events from delivery reports.',
    labels: ['channel', 'kind'],
  },
  heliograph_report_lag_seconds: {
    help: 'Time from the arrival of a delivery report until it was applied.',
    labels: ['provider'],
    buckets: WAITS,
  },
  heliograph_jobs_total: { help: 'Jobs that a worker has processed, by outcome.', labels: ['queue', 'end'] },
  heliograph_cpu_seconds_total: { help: 'CPU time used.', labels: ['process'] },
} as const satisfies Record<string, Metric>

type MetricTypes = typeof METRICS
type MetricName = keyof MetricTypes
type OptionalLabel<F extends MetricName> = MetricTypes[F] extends {
  optional: readonly (infer Name extends string)[]
}
  ? Name
  : never
type Labels<F extends MetricName> = Record<MetricTypes[F]['labels'][number], string | number> &
  Partial<Record<OptionalLabel<F>, string>>
type HistogramName = {
  [F in MetricName]: MetricTypes[F] extends { buckets: unknown } ? F : never
}[MetricName]
type CounterName = Exclude<MetricName, HistogramName>

/** The sums that were added for one set of labels. `values` has the format of the table `counters`. */
export type Addition = { figure: MetricName; labels: string; values: number[] }

const escaped = (value: string | number): string =>
  String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const labelText = (
  { labels: names, optional = [] }: Metric,
  labels: Readonly<Record<string, string | number>>,
): string =>
  [...names, ...optional.filter((name) => name in labels)]
    .map((name) => `${name}="${escaped(labels[name] ?? '')}"`)
    .join(',')

export function createMetrics() {
  let additions = new Map<string, Addition>()

  const findValues = (figure: MetricName, labels: string, length: number): number[] => {
    const key = `${figure} ${labels}`
    const known = additions.get(key)
    if (known) return known.values
    const values = new Array<number>(length).fill(0)
    additions.set(key, { figure, labels, values })
    return values
  }
  const add = (values: number[], at: number, by: number): void => {
    values[at] = (values[at] ?? 0) + by
  }

  return {
    count<F extends CounterName>(figure: F, labels: Labels<F>, by = 1): void {
      if (by === 0) return
      add(findValues(figure, labelText(METRICS[figure], labels), 1), 0, by)
    },
    observe<F extends HistogramName>(figure: F, labels: Labels<F>, seconds: number): void {
      const { buckets } = METRICS[figure]
      const values = findValues(figure, labelText(METRICS[figure], labels), buckets.length + 2)
      buckets.forEach((bound, at) => {
        if (seconds <= bound) add(values, at, 1)
      })
      add(values, buckets.length, 1)
      add(values, buckets.length + 1, seconds)
    },
    /** Returns the additions since the last call. */
    take(): Addition[] {
      const taken = [...additions.values()]
      additions = new Map()
      return taken
    },
    /** Adds values again that couldn't be stored. */
    putBack(back: readonly Addition[]): void {
      for (const { figure, labels, values } of back) {
        const own = findValues(figure, labels, values.length)
        values.forEach((value, at) => {
          add(own, at, value)
        })
      }
    },
  }
}

export type Metrics = ReturnType<typeof createMetrics>
