/** Renders counts per day or hour as a stacked bar chart and as a table. Pure. */
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import type { HourRow, StatRow } from '../../../db/stats/daily/stats.sql.ts'
import { dayWords, number, text } from './cell.ts'
import type { BarTone, Section, SectionOf, Switch } from './section.ts'
import { toLocalTime } from './zone.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const PLOT = { left: 44, right: 720, top: 12, bottom: 168 }

/** A part of each bar. Layers are in order from the bottom. */
type Layer = { label: string; tone: BarTone; statuses: readonly string[] }

const DELIVERED: Layer = {
  label: 'delivered',
  tone: 'good',
  statuses: ['delivered', 'opened', 'clicked', 'read'],
}

const EMAIL_LAYERS: readonly Layer[] = [
  DELIVERED,
  // “Sent” would also include bounces and complaints.
  { label: 'not reported', tone: 'busy', statuses: ['sent'] },
  { label: 'queued', tone: 'warn', statuses: ['queued'] },
  { label: 'bounced', tone: 'bad', statuses: ['bounced'] },
  // These were delivered, unlike the bounced ones.
  { label: 'complained', tone: 'worse', statuses: ['complained'] },
]

/** A message stays `queued` after the provider has accepted it, until the provider reports a status. */
const OTHER_LAYERS: readonly Layer[] = [
  DELIVERED,
  { label: 'sent', tone: 'busy', statuses: ['sent'] },
  { label: 'not reported yet', tone: 'warn', statuses: ['queued'] },
  { label: 'failed', tone: 'bad', statuses: ['failed'] },
]

const pickLayers = (channel: Channel): readonly Layer[] => (channel === EMAIL ? EMAIL_LAYERS : OTHER_LAYERS)

/** The counts of a bar. `at` is its day or hour, and `mark` the label on the axis, if it has one. */
type Span = { at: string; mark: string | null; counts: number[]; total: number }
type ChartData = {
  spans: readonly Span[]
  layers: readonly Layer[]
  column: string
  title: string
  note: string
}

function buildSpan(
  layers: readonly Layer[],
  own: readonly { status: string; count: number }[],
  names: Pick<Span, 'at' | 'mark'>,
): Span {
  const counts = layers.map(({ statuses }) =>
    own.filter(({ status }) => statuses.includes(status)).reduce((sum, { count }) => sum + count, 0),
  )
  return { ...names, counts, total: counts.reduce((sum, count) => sum + count, 0) }
}

/** Returns the counts of each day of a period, including days without messages. */
export function countByDay(
  channel: Channel,
  figures: readonly StatRow[],
  since: Date,
  days: number,
): ChartData {
  const layers = pickLayers(channel)
  const spans = Array.from({ length: days }, (_, index) => {
    const day = new Date(since.getTime() + index * DAY).toISOString().slice(0, 10)
    const fromLast = days - 1 - index
    const mark = fromLast === 0 ? 'today' : days <= 7 || fromLast % 7 === 0 ? dayWords(day) : null
    const own = figures.filter((row) => row.day === day)
    return buildSpan(layers, own, { at: day, mark })
  })
  const note = 'Messages are counted on the day they were accepted.'
  return { spans, layers, column: 'Day', title: 'By day (UTC)', note }
}

/** Counts each hour of a period. @param since the start of the first one. @param zone the reader's time zone. */
export function countByHour(
  channel: Channel,
  figures: readonly HourRow[],
  since: Date,
  { hours, zone }: { hours: number; zone: string },
): ChartData {
  const layers = pickLayers(channel)
  const spans = Array.from({ length: hours }, (_, index) => {
    const time = since.getTime() + index * HOUR
    const at = toLocalTime(new Date(time).toISOString(), zone).replace('T', ' ')
    const fromLast = hours - 1 - index
    const mark = fromLast === 0 ? 'now' : fromLast % 4 === 0 ? at.slice(11) : null
    const own = figures.filter(({ hour }) => Date.parse(hour) === time)
    return buildSpan(layers, own, { at, mark })
  })
  const note = 'Messages are counted in the hour they were accepted.'
  return { spans, layers, column: 'Hour', title: `By hour (${zone} time)`, note }
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return ([1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power
}

function buildColumn(
  { at, counts, total }: Span,
  index: number,
  { step, top, layers }: { step: number; top: number; layers: readonly Layer[] },
) {
  if (total === 0) return []
  const height = PLOT.bottom - PLOT.top
  const x = Math.round((PLOT.left + index * step + 2) * 10) / 10
  const width = Math.round((step - 4) * 10) / 10
  let y = PLOT.bottom
  const there = layers.flatMap(({ label, tone }, layer) => {
    const count = counts[layer] ?? 0
    const tall = Math.round((count / top) * height * 10) / 10
    y = Math.round((y - tall) * 10) / 10
    const words = `${count.toLocaleString('en-US')} ${label}`
    return count === 0 ? [] : [{ words, bar: { x, y, width, height: tall, tone } }]
  })
  const bars = there.flatMap(({ bar }) => (bar.height === 0 ? [] : [bar]))
  return [{ title: `${at}: ${there.map(({ words }) => words).join(', ')}`, bars }]
}

/** Returns the values of the y-axis: 3, 4 or 5 equal steps, so that they are round. */
function listTicks(top: number): number[] {
  const parts = [5, 4, 3].find((count) => /^[125]0*$/.test(String(top / count))) ?? 4
  const values = Array.from({ length: parts + 1 }, (_, part) => (part * top) / parts)
  return values.filter(Number.isInteger)
}

/** Builds a chart with its table and links to other periods. */
export function figureSections(
  title: string,
  stretch: ChartData,
  switches: readonly Switch[] = [],
): Section[] {
  const { spans, layers } = stretch
  const top = roundUp(Math.max(1, ...spans.map(({ total }) => total)))
  const step = (PLOT.right - PLOT.left) / spans.length
  const ticks = listTicks(top).map((value) => ({
    y: PLOT.bottom - (value / top) * (PLOT.bottom - PLOT.top),
    label: value.toLocaleString('en-US'),
  }))
  const marks = spans.flatMap(({ mark }, index) =>
    mark === null ? [] : [{ x: Math.round(PLOT.left + (index + 0.5) * step), label: mark }],
  )
  const legend = layers.map(({ tone, label }, layer) => {
    const total = spans.reduce((sum, { counts }) => sum + (counts[layer] ?? 0), 0)
    return { tone, label, total: total.toLocaleString('en-US') }
  })
  return [
    {
      kind: 'chart',
      title,
      label: `${title}. The table below has the same data.`,
      switches,
      table: chartTable(stretch),
      columns: spans.flatMap((span, index) => buildColumn(span, index, { step, top, layers })),
      ...{ ticks, marks, legend },
    },
  ]
}

/** Builds the table of a chart, latest first, without empty days or hours. */
const chartTable = ({ spans, layers, column, title, note }: ChartData): SectionOf<'table'> => ({
  kind: 'table',
  title,
  note,
  columns: [
    { label: column, main: true },
    ...layers.map(({ label }) => ({ label, number: true })),
    { label: 'All', number: true },
  ],
  rows: spans
    .filter(({ total }) => total > 0)
    .reverse()
    .map(({ at, counts, total }) => ({
      cells: [text(at), ...counts.map((count) => number(count)), number(total)],
    })),
  empty: 'No messages in this period.',
})
