/** Figures of days as a stacked chart, drawn on the server, and as the table that says the same. Pure. */
import type { FigureRow } from '../../../db/figures/daily/figures.sql.ts'
import { number, type Tone, text } from './cell.ts'
import type { Section } from './section.ts'

const DAY = 86_400_000
const PLOT = { left: 44, right: 720, top: 12, bottom: 232 }

/** What a bar is made of, from the bottom up. */
const LAYERS: readonly { label: string; tone: Tone; statuses: readonly string[] }[] = [
  { label: 'delivered', tone: 'good', statuses: ['delivered', 'opened', 'clicked', 'read'] },
  { label: 'sent', tone: 'busy', statuses: ['sent'] },
  { label: 'waiting', tone: 'warn', statuses: ['queued'] },
  { label: 'bounced', tone: 'bad', statuses: ['bounced', 'complained', 'failed'] },
]

type Day = { day: string; counts: number[]; total: number }

/** Each day of the stretch with its layers, the days without messages too. */
export function daysOf(figures: readonly FigureRow[], since: Date, days: number): Day[] {
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(since.getTime() + index * DAY).toISOString().slice(0, 10)
    const own = figures.filter((row) => row.day === day)
    const counts = LAYERS.map(({ statuses }) =>
      own.filter(({ status }) => statuses.includes(status)).reduce((sum, { count }) => sum + count, 0),
    )
    return { day, counts, total: counts.reduce((sum, count) => sum + count, 0) }
  })
}

/** The next round number. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return ([1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power
}

function barsOf({ day, counts }: Day, index: number, scale: { step: number; top: number }) {
  const height = PLOT.bottom - PLOT.top
  let y = PLOT.bottom
  return counts.flatMap((count, layer) => {
    const { label, tone } = LAYERS[layer] ?? { label: '', tone: 'plain' as const }
    const tall = Math.round((count / scale.top) * height * 10) / 10
    if (tall === 0) return []
    y = Math.round((y - tall) * 10) / 10
    const x = Math.round((PLOT.left + index * scale.step + 2) * 10) / 10
    const width = Math.round((scale.step - 4) * 10) / 10
    return [{ x, y, width, height: tall, tone, title: `${day}: ${count.toLocaleString('en-US')} ${label}` }]
  })
}

const dayShort = (day: string): string =>
  new Date(day).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** The chart of some days. */
function chartOf(title: string, days: readonly Day[]): Section {
  const top = roundUp(Math.max(1, ...days.map(({ total }) => total)))
  const step = (PLOT.right - PLOT.left) / days.length
  const ticks = [0, 0.25, 0.5, 0.75, 1]
    .map((part) => part * top)
    .filter(Number.isInteger)
    .map((value) => ({
      y: PLOT.bottom - (value / top) * (PLOT.bottom - PLOT.top),
      label: value.toLocaleString('en-US'),
    }))
  const labels = days.flatMap(({ day }, index) =>
    (days.length - 1 - index) % 7 === 0
      ? [
          {
            x: Math.round(PLOT.left + (index + 0.5) * step),
            label: index === days.length - 1 ? 'today' : dayShort(day),
          },
        ]
      : [],
  )
  return {
    kind: 'chart',
    title,
    label: `${title}: the table below says the same`,
    bars: days.flatMap((day, index) => barsOf(day, index, { step, top })),
    ticks,
    days: labels,
    legend: LAYERS.map(({ tone, label }, layer) => {
      const total = days.reduce((sum, { counts }) => sum + (counts[layer] ?? 0), 0)
      return { tone, label, total: total.toLocaleString('en-US') }
    }),
  }
}

/** The same figures as a table, the latest day first; days without messages are left out. */
const tableOf = (days: readonly Day[]): Section => ({
  kind: 'table',
  title: 'By day (UTC)',
  fold: days.some(({ total }) => total > 0),
  note: 'By the day on which a message was accepted.',
  columns: [
    { label: 'Day' },
    ...LAYERS.map(({ label }) => ({ label, number: true })),
    { label: 'All', number: true },
  ],
  rows: days
    .filter(({ total }) => total > 0)
    .reverse()
    .map(({ day, counts, total }) => ({
      cells: [text(day), ...counts.map((count) => number(count)), number(total)],
    })),
  empty: 'Nothing was accepted on these days.',
})

/** Days as a chart with its table; the table's words alone while there is nothing to draw. */
export const figureSections = (title: string, days: readonly Day[]): Section[] =>
  days.some(({ total }) => total > 0) ? [chartOf(title, days), tableOf(days)] : [{ ...tableOf(days), title }]
