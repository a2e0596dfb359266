/** Describes how the texts and variables of two versions of a template differ. Pure. */

import { difference } from '../components/difference.ts'
import type { Alert, Section } from '../components/section.ts'
import { compact } from '../server/builders.ts'
import { compareSlots, slotWords } from './template-parts.ts'

type Parts = { html: string; text: string }

const changesOf = (title: string, before: string, after: string): Section =>
  before === after
    ? { kind: 'text', title, paragraphs: ['No change.'] }
    : { kind: 'difference', title, lines: difference(before, after) }

export const partChanges = (before: Parts, after: Parts): Section[] => [
  changesOf('HTML', before.html, after.html),
  changesOf('Plain text', before.text, after.text),
]

/** Builds the alerts about variables that need a value from then on, or no longer do. */
export function slotAlerts(before: readonly string[], after: readonly string[], then: string): Alert[] {
  const { added, removed } = compareSlots(before, after)
  return compact<Alert>([
    added.length > 0 && {
      tone: 'warn',
      title: `New ${added.length === 1 ? 'variable' : 'variables'}: ${slotWords(added)}`,
      text: `${then}, emails without a value for ${added.length === 1 ? 'it' : 'each'} are rejected.`,
    },
    removed.length > 0 && {
      tone: 'plain',
      title: `No longer used: ${slotWords(removed)}`,
      text: `Values for ${removed.length === 1 ? 'it' : 'them'} are ignored.`,
    },
  ])
}
