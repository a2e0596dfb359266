/**
 * Values as people read them: times with their age, statuses as words, numbers with separators. Pure.
 * Promises: times are absolute, in UTC, with their age beside them (the script shows the reader's zone, and UTC in the
 * tip); nothing is cut without a way to the whole.
 */

/** How a thing stands, for its colour; the words say the same. */
export type Tone = 'plain' | 'good' | 'busy' | 'warn' | 'bad'

/** The same, where what may be left out may also be undefined. */
export type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] }

export type Cell = Loose<{
  text: string
  /** After /dashboard. */
  href?: string
  /** A smaller line under the text. */
  detail?: string
  /** Shown as a label in this colour. */
  tone?: Tone
  /** A bar in place of the text, 0 to 100. */
  bar?: { filled: number; tone: Tone }
  /** A machine's word: in monospace. */
  code?: boolean
  number?: boolean
  /** Set for a time: its machine-readable form, and how long ago it was. */
  iso?: string
  age?: string
  /** The time in a word or two, for a line of a list; and whether that is its day. */
  short?: string
  isDay?: boolean
  /** The whole of what may be cut, where the text is not that by itself. */
  tip?: string
  /** Offers to copy the text, or `copied`. */
  copy?: boolean
  /** What is copied where the text is only a part of it. */
  copied?: string
  /** A button of a form of its own. */
  button?: Loose<{
    action: string
    label: string
    tone?: 'danger' | 'quiet'
    /** What the form sends besides. */
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

/** A number with its unit in words: `3 hours`. */
export function duration(seconds: number): string {
  const unit = UNITS.find((candidate) => seconds >= candidate.seconds)
  if (!unit) return seconds < 1 ? 'under 1 s' : plural(Math.floor(seconds), 'second')
  return plural(Math.floor(seconds / unit.seconds), unit.one)
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`

/** Words at the head of a sentence or a label. */
export const headed = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}`

/** Bytes in decimal units, as plans count them: `1.5 MB`. */
export function byteWords(bytes: number): string {
  const [unit, size] =
    bytes >= 1e9 ? ['GB', 1e9] : bytes >= 1e6 ? ['MB', 1e6] : bytes >= 1e3 ? ['kB', 1e3] : ['bytes', 1]
  return `${(bytes / Number(size)).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${unit}`
}

/** How long ago a time is, or how far off. */
export function ageOf(iso: string, now: Date): string {
  const seconds = (now.getTime() - new Date(iso).getTime()) / 1_000
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`
}

/** How long until a time, to the second: `in 4 min 12 s`. */
export function countdown(iso: string, now: Date): string {
  const seconds = Math.max(0, Math.ceil((Date.parse(iso) - now.getTime()) / 1_000))
  if (seconds >= 3_600) return `in ${duration(seconds)}`
  return seconds < 60 ? `in ${seconds} s` : `in ${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export const utc = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`

/** A day in words: `1 December`. */
export const dayWords = (iso: string): string =>
  new Date(iso).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })

/** A time as a list has it: its age, or its day once that says more. */
function shortTime(iso: string, now: Date): Pick<Cell, 'short' | 'isDay'> {
  if (Math.abs(now.getTime() - Date.parse(iso)) < 86_400_000) return { short: ageOf(iso, now) }
  const at = new Date(iso)
  const year = at.getUTCFullYear() === now.getUTCFullYear() ? {} : ({ year: 'numeric' } as const)
  const day = at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...year, timeZone: 'UTC' })
  return { short: day, isDay: true }
}

/** A time with its age; `never` for none. */
export const time = (iso: string | null, now: Date, never = 'never'): Cell =>
  iso === null ? { text: never } : { text: utc(iso), iso, age: ageOf(iso, now), ...shortTime(iso, now) }

/** Plain text; a dash for nothing. */
export const text = (value: string | null, more: Partial<Cell> = {}): Cell => ({
  text: value || '–',
  ...more,
})

/** A number with separators, at the right. */
export const number = (value: number | null, more: Partial<Cell> = {}): Cell => ({
  text: value === null ? 'unlimited' : value.toLocaleString('en-US'),
  number: true,
  ...more,
})

/** A bar that is filled in part. */
export const bar = (part: number, of: number, tone: Tone): Cell => ({
  text: '',
  bar: { filled: of === 0 ? 0 : Math.max(part > 0 ? 1 : 0, Math.round((part * 100) / of)), tone },
})

/** The words that have a tone; all others are plain. */
const TONES: readonly [Tone, readonly string[]][] = [
  ['good', ['sending', 'delivered', 'opened', 'clicked', 'read', 'subscribed']],
  ['good', ['verified', 'approved', 'found', 'active']],
  ['busy', ['queued']],
  ['warn', ['pending', 'slowed', 'probing']],
  ['bad', ['paused', 'missing', 'different', 'bounced', 'complained', 'failed', 'rejected']],
]

export const status = (word: string, more: Partial<Cell> = {}): Cell => ({
  text: word.replaceAll('_', ' '),
  tone: TONES.find(([, words]) => words.includes(word))?.[0] ?? 'plain',
  ...more,
})
