/** Describes why a broadcast skipped a contact. */
import { type Cell, headed, text } from './cell.ts'

/** The cause of a skip, and the change if the contact matches now. */
const SKIP_WORDS: Readonly<Record<string, { cause: string; now?: string }>> = {
  variables: { cause: 'a variable had no value' },
  unsubscribed: { cause: 'was unsubscribed', now: 'subscribed now' },
  suppressed: { cause: 'was suppressed', now: 'no longer suppressed' },
  left_topic: { cause: 'had left the topic', now: 'has it again' },
  deleted: { cause: 'the contact was deleted', now: 'added again' },
  cancelled: { cause: 'the broadcast was cancelled' },
}

/** The start of the detail of a skip, before the names of the variables. */
const MISSING = 'no value for '

/** Tells if a contact has the missing values of its skip by now. */
function filledWords(detail: string, own: Readonly<Record<string, string>> | undefined): string | undefined {
  const slots = detail.startsWith(MISSING) ? detail.slice(MISSING.length).split(', ') : []
  if (slots.length === 0 || !own || !slots.every((slot) => Object.hasOwn(own, slot))) return undefined
  return slots.length === 1 ? 'has one now' : 'has them now'
}

/**
 * Builds the cell with the reason of a skip and the change since then. The detail of missing variables names
 * them. @param matches true if the contact matches the audience now.
 */
export function skipCell(
  { reason, detail }: { reason: string; detail: string },
  own: Readonly<Record<string, string>> | undefined,
  matches: boolean,
): Cell {
  const words = SKIP_WORDS[reason]
  if (reason === 'variables' && detail !== '') {
    const cause = detail.startsWith(MISSING) ? `had ${detail}` : detail
    return text(headed(cause), { detail: filledWords(detail, own) })
  }
  return text(headed(words?.cause ?? reason), { detail: matches ? words?.now : undefined })
}
