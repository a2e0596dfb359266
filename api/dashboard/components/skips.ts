/** Describes why a broadcast skipped a contact. */
import { type Cell, headed, text } from './cell.ts'

/** The cause of a skip, and the change if the contact matches now. The change continues the sentence. */
const SKIP_WORDS: Readonly<Record<string, { cause: string; now?: string }>> = {
  variables: { cause: 'a variable had no value', now: 'but has one now' },
  unsubscribed: { cause: 'was unsubscribed', now: 'but is subscribed now' },
  suppressed: { cause: 'was suppressed', now: 'but no longer is' },
  left_topic: { cause: 'had left the topic', now: 'but has it again' },
  deleted: { cause: 'the contact was deleted', now: 'but was added again' },
  cancelled: { cause: 'the broadcast was cancelled' },
}

/** Returns the slots without a value among a contact's properties. */
export const findLacking = (slots: readonly string[], own: Readonly<Record<string, string>> = {}): string[] =>
  slots.filter((slot) => !Object.hasOwn(own, slot))

/** What changed since a skip: if the contact matches now, and its variables without a value. */
type Since = { matches: boolean; lacks: readonly string[] }

/** Builds the cell with the reason of a skip and the change since then. The detail names missing variables. */
export function skipCell(
  { reason, detail }: { reason: string; detail: string },
  { matches, lacks }: Since,
): Cell {
  const { cause = reason, now } = SKIP_WORDS[reason] ?? {}
  const isLeft = reason === 'variables' && lacks.length > 0
  return text(headed(reason === 'variables' && detail !== '' ? detail : cause), {
    detail: matches && !isLeft ? now : undefined,
  })
}
