/** Generates addresses and domains for property-based tests, and makes any text printable in titles. */
import fc from 'fast-check'

const atom = fc.stringMatching(/^[\w!#$%&'*+\-/=?^`{|}~]{1,20}$/)
const local = fc.array(atom, { minLength: 1, maxLength: 3 }).map((atoms) => atoms.join('.'))
export const domain = fc.oneof(
  fc.domain(),
  fc.constantFrom('пример.рф', 'BÜCHER.example', 'xn--bcher-kva.example', '例え.jp'),
)
export const address = fc.tuple(local, domain).map(([local, domain]) => `${local}@${domain}`)

/** Escapes a text for a title. A raw U+2028 or NUL would break the TAP stream. */
export const printable = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `U+${unit.charCodeAt(0).toString(16)}`)
