/**
 * Detects deferrals in a row that start with the same text. If enough messages to enough recipient domains are
 * affected, the sender slows down as after a 421. An accepted recipient ends the sequence. Pure. DECISIONS: Deferrals
 * of a sender.
 */

/** A deferral of a message. Responses with the same start have the same `key`. */
export type Deferral = { key: string; words: string; message: string; domains: readonly string[] }

/** The latest sequence of deferrals of a sender. `slowed`: true if it was slowed only because of them. */
export type Deferrals = {
  key: string
  messages: readonly string[]
  domains: readonly string[]
  slowed: boolean
}

/** The minimum numbers of messages and of recipient domains. */
const MESSAGES = 6
const DOMAINS = 3

const joined = (one: readonly string[], other: readonly string[], most: number): string[] =>
  [...new Set([...one, ...other])].slice(0, most)

/** Returns the sequence after one more deferral. */
export function afterDeferral(before: Deferrals | null, { key, message, domains }: Deferral): Deferrals {
  const same = before?.key === key ? before : { messages: [], domains: [], slowed: before?.slowed ?? false }
  return {
    key,
    messages: joined(same.messages, [message], MESSAGES),
    domains: joined(same.domains, domains, DOMAINS),
    slowed: same.slowed,
  }
}

/** True if the row is about the sender. */
export const isAboutSender = ({ messages, domains }: Deferrals): boolean =>
  messages.length >= MESSAGES && domains.length >= DOMAINS
