/**
 * Formats values for display: times with their age, statuses, numbers with separators. Pure. Times are in
 * UTC, and the script converts them to the reader's time zone with UTC in the tooltip.
 */
import { plural } from '../../../db/plural.ts'

/** Colour of a status. The text always has the same information. */
export type Tone = 'plain' | 'good' | 'busy' | 'warn' | 'bad'

/** The same type, whose optional properties can also be undefined. */
export type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] }

export type Cell = Loose<{
  text: string
  /** The path after /dashboard. */
  href?: string
  /** A smaller line under the text. */
  detail?: string
  /** Shown as a label in this colour. */
  tone?: Tone
  /** True to leave it out of a card, where the status says the same. */
  usual?: boolean
  /** A bar instead of the text, from 0 to 100. */
  bar?: { filled: number; tone: Tone }
  /** A page, shown as a small picture instead of the text, which is its name. */
  frame?: string
  /** True for monospace. */
  code?: boolean
  number?: boolean
  /** A time as ISO 8601, and its age. */
  iso?: string
  age?: string
  /** A short form of the time for lists. `isDay` is true if it is a date. */
  short?: string
  isDay?: boolean
  /** Tooltip, if it isn't the text itself. */
  tip?: string
  /** True to show a Copy button for the text or `copied`. */
  copy?: boolean
  /** The text to copy, if it isn't the shown one. */
  copied?: string
  /** A button with its own form. */
  button?: Loose<{
    action: string
    label: string
    tone?: 'danger' | 'quiet'
    /** Hidden fields of the form. */
    sends?: Readonly<Record<string, string>>
  }>
}>

const UNITS = [
  { seconds: 31_536_000, one: 'year' },
  { seconds: 2_592_000, one: 'month' },
  { seconds: 86_400, one: 'day' },
  { seconds: 3_600, one: 'hour' },
  { seconds: 60, one: 'minute' },
] as const

/** Formats a duration in its largest unit, such as `3 hours`. */
export function duration(seconds: number, round = Math.floor): string {
  const unit = UNITS.find((candidate) => seconds >= candidate.seconds)
  if (!unit) return seconds < 1 ? 'under 1 s' : plural(round(seconds), 'second')
  return plural(round(seconds / unit.seconds), unit.one)
}

/** Capitalizes the first letter. */
export const headed = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}`

/** Formats bytes in decimal units, like plans: `1.5 MB`. */
export function byteWords(bytes: number): string {
  const [unit, size] =
    bytes >= 1e9 ? ['GB', 1e9] : bytes >= 1e6 ? ['MB', 1e6] : bytes >= 1e3 ? ['kB', 1e3] : ['bytes', 1]
  return `${(bytes / Number(size)).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${unit}`
}

/** Formats the age of a time, or the time until it. */
export function formatAge(iso: string, now: Date): string {
  const seconds = (now.getTime() - new Date(iso).getTime()) / 1_000
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`
}

/** Formats the time until a moment, to the second: `4 min 12 s`, on one line. */
export function timeLeft(iso: string, now: Date): string {
  const seconds = Math.max(0, Math.ceil((Date.parse(iso) - now.getTime()) / 1_000))
  if (seconds >= 3_600) return duration(seconds)
  const words = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return words.replaceAll(' ', '\u00a0')
}

export const countdown = (iso: string, now: Date): string => `in ${timeLeft(iso, now)}`

/** Formats a date like dashboard.js, such as `1 Dec` or `1 Dec 2026`. */
function formatDay(iso: string, hasYear: boolean): string {
  const year = hasYear ? ({ year: 'numeric' } as const) : {}
  return new Date(iso).toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'short',
    ...year,
    timeZone: 'UTC',
  })
}

export const dayWords = (iso: string): string => formatDay(iso, false)

/** Formats a time, such as `1 Dec 2026, 09:30:00 UTC`. */
export const utc = (iso: string): string => `${formatDay(iso, true)}, ${iso.slice(11, 19)} UTC`

/** Formats a time for lists: its age within a day, otherwise the date. */
function shortTime(iso: string, now: Date): Pick<Cell, 'short' | 'isDay'> {
  if (Math.abs(now.getTime() - Date.parse(iso)) < 86_400_000) return { short: formatAge(iso, now) }
  const hasYear = new Date(iso).getUTCFullYear() !== now.getUTCFullYear()
  return { short: formatDay(iso, hasYear), isDay: true }
}

/** Builds a cell with a time and its age, or with `never` for null. */
export const time = (iso: string | null, now: Date, never = 'never'): Cell =>
  iso === null ? { text: never } : { text: utc(iso), iso, age: formatAge(iso, now), ...shortTime(iso, now) }

/**
 * Shown about members without an open session. Activity is stored with sessions, which are deleted after a sign-out
 * or 12 h without use, so they may have been active before.
 */
export const NO_ACTIVITY = 'No open session in this team.'

export const lastActive = (at: string | null, now: Date): Cell =>
  at === null ? { text: 'no open session', tip: NO_ACTIVITY } : time(at, now)

/** Builds a cell with plain text, or a dash if it is empty. */
export const text = (value: string | null, more: Partial<Cell> = {}): Cell => ({
  text: value || '–',
  ...more,
})

/** Builds a right-aligned cell with a number. Null means unlimited. */
export const number = (value: number | null, more: Partial<Cell> = {}): Cell => ({
  text: value === null ? 'unlimited' : value.toLocaleString('en-US'),
  number: true,
  ...more,
})

/** Builds a cell with a bar. @param label the text for screen readers. */
export const bar = (part: number, of: number, tone: Tone, label = ''): Cell => ({
  text: label,
  bar: { filled: of === 0 ? 0 : Math.max(part > 0 ? 1 : 0, Math.round((part * 100) / of)), tone },
})

/** Tones of statuses. All others are plain. */
const TONES: readonly [Tone, readonly string[]][] = [
  ['good', ['sending', 'delivered', 'opened', 'clicked', 'read', 'subscribed']],
  ['good', ['verified', 'approved', 'found', 'active']],
  ['busy', ['queued']],
  ['warn', ['pending', 'slowed', 'probing', 'skipped', 'expired']],
  ['bad', ['paused', 'missing', 'different', 'bounced', 'complained', 'failed', 'rejected']],
]

export const status = (word: string, more: Partial<Cell> = {}): Cell => ({
  text: word.replaceAll('_', ' '),
  tone: TONES.find(([, words]) => words.includes(word))?.[0] ?? 'plain',
  ...more,
})
