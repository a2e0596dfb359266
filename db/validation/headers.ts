/**
 * Validates custom headers, which are stored and sent exactly as given. DECISIONS: Reserved headers, Header values.
 */
import type { FieldError } from '../errors.ts'
import { memberPath } from './strings.ts'

const MAX_HEADERS = 10
const LONGEST_NAME = 126
const LONGEST_VALUE = 995

const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ...['from', 'to', 'cc', 'bcc', 'subject', 'date', 'message-id', 'return-path', 'received'],
  ...['dkim-signature', 'mime-version', 'content-type', 'content-transfer-encoding'],
])

/** `x-heliograph-` is for our own headers. X-Heliograph-Ref links reports to their email. */
const RESERVED_PREFIXES = ['x-ses', 'x-provider', 'x-heliograph-'] as const

/**
 * Returns the first error in the order of the request, or null. Allows List-Unsubscribe and List-Unsubscribe-Post
 * (RFC 8058).
 */
export function headersFault(headers: Readonly<Record<string, string>>): FieldError | null {
  if (Object.keys(headers).length > MAX_HEADERS)
    return { field: 'headers', problem: `must have at most ${MAX_HEADERS} entries` }
  return wireFault(headers)
}

/** Like `headersFault`, but without a limit on their number, because broadcasts add headers. */
export function wireFault(headers: Readonly<Record<string, string>>): FieldError | null {
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const problem = nameProblem(name, seen) ?? valueProblem(value)
    if (problem !== null) return { field: memberPath('headers', name), problem }
    seen.add(name.toLowerCase())
  }
  return null
}

/** The characters of a header name (RFC 7230). */
export const HEADER_TOKEN = /^[\w!#$%&'*+\-.^`|~]+$/

/** Prefixes and names, in any case, that a deployment reserves in addition to the API's list. */
export type Reserved = { prefixes: readonly string[]; names: readonly string[] }

export const NONE_RESERVED: Reserved = { prefixes: [], names: [] }

/** Returns an error for the first header that the deployment reserves to control the operator's relay, or null. */
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

/** A token of RFC 7230 is also a valid field name in RFC 5322. */
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
