/**
 * Deferrals of one sender in a row that begin with the same words. If enough messages to enough recipient domains have
 * met them, they are about the sender, which then slows like after a 421. One message that is always deferred slows no
 * one. An accepted recipient ends the row. Pure. DECISIONS: Deferrals of a sender.
 */

/** What a message met: `key` is the same for responses that begin alike. */
export type Deferral = { key: string; words: string; message: string; domains: readonly string[] }

/** The last row of deferrals of a sender. `slowed`: whether it was slowed for them alone. */
export type Deferrals = {
  key: string
  messages: readonly string[]
  domains: readonly string[]
  slowed: boolean
}

/** From this many messages on, to this many recipient domains at least. */
const MESSAGES = 6
const DOMAINS = 3

const joined = (one: readonly string[], other: readonly string[], most: number): string[] =>
  [...new Set([...one, ...other])].slice(0, most)

/** The row after one more deferral. */
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
