/**
 * Owns the rules of custom headers. DECISIONS: Reserved headers, Header values.
 * Promises: reports the first breach in request order and names the header. Headers that pass can go on the wire.
 * Must not change, reorder or fold anything: the map is stored and sent exactly as given.
 */
import type { FieldError } from '../errors.ts'
import { memberPath } from './strings.ts'

const MAX_HEADERS = 10
const LONGEST_NAME = 126
const LONGEST_VALUE = 995

const RESERVED_NAMES: ReadonlySet<string> = new Set([
  'from',
  'to',
  'cc',
  'bcc',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'return-path',
  'received',
  'dkim-signature',
])

/** `x-heliograph-` is ours: X-Heliograph-Ref finds an email's reports. */
const RESERVED_PREFIXES = ['x-ses', 'x-provider', 'x-heliograph-'] as const

/**
 * The first breach; null when all are fine. List-Unsubscribe and List-Unsubscribe-Post are ordinary names here (RFC
 * 8058).
 */
export function headersFault(headers: Readonly<Record<string, string>>): FieldError | null {
  if (Object.keys(headers).length > MAX_HEADERS)
    return { field: 'headers', problem: `must have at most ${MAX_HEADERS} entries` }
  return wireFault(headers)
}

/** The same of headers that go on the wire, however many: a broadcast adds its own to those that were given. */
export function wireFault(headers: Readonly<Record<string, string>>): FieldError | null {
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const problem = nameProblem(name, seen) ?? valueProblem(value)
    if (problem !== null) return { field: memberPath('headers', name), problem }
    seen.add(name.toLowerCase())
  }
  return null
}

/** What a header name is made of (RFC 7230). */
export const HEADER_TOKEN = /^[\w!#$%&'*+\-.^`|~]+$/

/** What is reserved beside the API's own list: beginnings of names, and whole names, in any case. */
export type Reserved = { prefixes: readonly string[]; names: readonly string[] }

/**
 * The first header that is reserved here; null for none. What an operator's relay obeys is
 * the operator's to reserve: the API's own list is closed.
 */
export function reservedFault(
  headers: Readonly<Record<string, string>>,
  { prefixes, names }: Reserved,
): FieldError | null {
  for (const name of Object.keys(headers)) {
    if (names.some((reserved) => name.toLowerCase() === reserved.toLowerCase()))
      return { field: memberPath('headers', name), problem: RESERVED }
    const prefix = prefixes.find((reserved) => name.toLowerCase().startsWith(reserved.toLowerCase()))
    if (prefix !== undefined) return { field: memberPath('headers', name), problem: reservedBy(prefix) }
  }
  return null
}

const RESERVED = "can't be set. This name is reserved"
const reservedBy = (prefix: string): string =>
  `can't be set. Names with the prefix ${prefix.toUpperCase()} are reserved`

/** A token of RFC 7230, which is narrower than a field name of RFC 5322 and so valid under both. */
function nameProblem(name: string, seen: ReadonlySet<string>): string | null {
  if (name.length > LONGEST_NAME) return `must have a name of at most ${LONGEST_NAME} characters`
  if (!HEADER_TOKEN.test(name)) return 'must have a name that is a valid header token'
  const lower = name.toLowerCase()
  if (RESERVED_NAMES.has(lower)) return RESERVED
  const prefix = RESERVED_PREFIXES.find((reserved) => lower.startsWith(reserved))
  if (prefix !== undefined) return reservedBy(prefix)
  if (seen.has(lower)) return 'must not appear twice (names differ only in case)'
  return null
}

const valueProblem = (value: string): string | null =>
  value.length <= LONGEST_VALUE && /^[ -~]+$/.test(value)
    ? null
    : `must be 1 to ${LONGEST_VALUE} printable ASCII characters`
