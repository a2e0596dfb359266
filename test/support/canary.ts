/**
 * Checks in every test that uses this support that contents and secrets stay where they belong. Test input
 * (bodies, forms, keys, settings) must not appear in logs, errors, jobs or metrics. A leak fails the test
 * file when its process ends, with its location. Contents may be logged at debug; secrets may not. An error
 * may repeat its own call's input, except secrets.
 */

/** Where a text was found, in readable form. */
type Note = {
  where: string
  text: string
  /** The call's own input, which may be repeated. */
  own?: string
  /** True if contents are allowed here. */
  mayHoldContents?: boolean
}

export type Canary = {
  /** Records the contents that a client sends. */
  contents(body: unknown): void
  /** Records secrets. Missing and short values are skipped. */
  secrets(...values: (string | undefined)[]): void
  note(note: Note): void
  /** Returns every leak so far, one per line. */
  leaks(): string[]
  /** Keeps the leaks so far and starts over, because the next test file has other contents. */
  forget(): void
}

/** The fields with customer content, at any depth of a body or a form. */
const FIELDS = new Set([
  ...['html', 'text', 'subject', 'to', 'cc', 'bcc', 'email', 'reply_to', 'tags'],
  ...['headers', 'properties', 'variables', 'parameters'],
])
/** Shorter values also occur by chance, within other text. */
const SHORTEST = 8
const LONGEST = 80
/** Some tests send ten thousand addresses. Checking the first ones is enough. */
const MOST = 300
const SHORTEST_SECRET = 12

/** Returns the longest run of a text that JSON writes unchanged. Null if none is distinctive. */
function markOf(text: string): string | null {
  const [run = ''] = text
    .slice(0, 2_000)
    .split(/["\\\p{C}]/u)
    .sort((one, other) => other.length - one.length)
  const mark = run.slice(0, LONGEST).trim()
  return mark.length >= SHORTEST && /[^a-zA-Z_-]/.test(mark) ? mark : null
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

/** Returns every string under a field with content. */
function contentsIn(body: unknown): string[] {
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body)
    .slice(0, MOST)
    .flatMap(([name, value]) => (FIELDS.has(name) ? stringsIn(value) : contentsIn(value)))
}

/** True if a mark is in a text as a separate word: `a@example.org` is not in `ana@example.org`. */
function holds(text: string, mark: string): boolean {
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1))
    if (!/[\w.+-]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + mark.length] ?? ' ')) return true
  return false
}

export function createCanary(): Canary {
  const contents = new Set<string>()
  const secrets = new Set<string>()
  const notes: Note[] = []
  const leaked: string[] = []
  const found = (kind: string, mark: string, texts: readonly Note[]): string[] => {
    const note = texts.find(({ text, own = '' }) => holds(text, mark) && !own.includes(mark))
    return note ? [`${kind} in ${note.where}: ${JSON.stringify(mark)} in ${note.text.slice(0, 500)}`] : []
  }
  const leaks = (): string[] => {
    const closed = notes.filter(({ mayHoldContents }) => !mayHoldContents)
    const [all, rest] = [notes, closed].map((texts) => texts.map(({ text }) => text).join('\n'))
    // A search in the joined text is cheap, and it nearly always finds nothing.
    const secretMarks = [...secrets].filter((mark) => all?.includes(mark))
    const contentMarks = [...contents].filter((mark) => rest?.includes(mark))
    const bare = notes.map(({ where, text }) => ({ where, text }))
    return [
      ...secretMarks.flatMap((mark) => found('a secret', mark, bare)),
      ...contentMarks.flatMap((mark) => found('contents', mark, closed)),
    ]
  }
  return {
    contents(body) {
      for (const text of contents.size < MOST ? contentsIn(body) : []) {
        const mark = markOf(text)
        if (mark !== null) contents.add(mark)
      }
    },
    secrets(...values) {
      for (const value of values) if (value && value.length >= SHORTEST_SECRET) secrets.add(value)
    },
    note: (note) => void notes.push(note),
    leaks: () => [...leaked, ...leaks()],
    forget() {
      leaked.push(...leaks())
      notes.length = 0
      contents.clear()
    },
  }
}

/** The canary of this process. */
export const canary = createCanary()

process.once('exit', () => {
  const leaks = canary.leaks()
  if (leaks.length === 0) return
  process.exitCode = 1
  process.stderr.write(`${leaks.map((leak) => `leaked: ${leak}`).join('\n')}\n`)
})
