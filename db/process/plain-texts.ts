/** Converts HTML to plain text. Long HTML is converted in a thread, so that it doesn't block the process. */

import type { Template } from '../validation/slots.ts'
import { createKeyedSemaphore } from './keyed-semaphore.ts'
import { isThreadDeath, openThread } from './thread.ts'

/** Longer HTML (in characters) is converted in the thread. */
const LONGEST_AT_ONCE = 8 * 1024
/**
 * The time limit of a conversion, in milliseconds. Slower HTML gets no text. The worst known case needs two seconds.
 */
const CONVERT_TIMEOUT_MS = 10_000
const THREAD_WAIT_MS = 60_000
const THREAD_MEMORY = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 }

const THREAD = new URL('./plain-text-thread.ts', import.meta.url)

export function createPlainTexts() {
  const semaphore = createKeyedSemaphore(1)
  const made = new WeakMap<Template, Promise<Template>>()
  let thread: ReturnType<typeof openThread<string, string>> | null = null

  const inThread = async (html: string): Promise<string> => {
    thread ??= openThread(THREAD, THREAD_MEMORY)
    const pool = await thread
    const work = () =>
      pool.run(html, { signal: AbortSignal.timeout(CONVERT_TIMEOUT_MS) }).catch((error: unknown) => {
        if (isThreadDeath(error)) return ''
        throw error
      })
    const text = await semaphore.run('thread', work, THREAD_WAIT_MS)
    if (text === null) throw new Error('too many emails are waiting for their plain text')
    return text
  }
  const ofHtml = async (html: string): Promise<string> => {
    if (html.length > LONGEST_AT_ONCE) return inThread(html)
    // Loaded when it is first needed: 1 MB.
    const { plainText } = await import('../validation/plain-text.ts')
    return plainText(html)
  }

  return {
    /** Returns the plain text of an email's HTML, or '' if it shows no text or exceeds the time limit. */
    ofHtml,
    /** Returns the plain text of a template, with the same variables. */
    ofTemplate(template: Template): Promise<Template> {
      const known = made.get(template)
      if (known) return known
      const text = ofHtml(withMarks(template)).then((marked) => readMarks(marked, template))
      made.set(template, text)
      text.catch(() => made.delete(template))
      return text
    },
    async close(): Promise<void> {
      semaphore.close()
      await (await thread)?.destroy()
    },
  }
}

export type PlainTexts = ReturnType<typeof createPlainTexts>

/** Replaces a variable during the conversion: its index in `slots` between two private-use characters. */
const mark = (at: number): string => `\u{F0000}${at}\u{F0001}`
const MARK = /\u{F0000}(\d{1,7})\u{F0001}/u

function withMarks({ texts, names, slots }: Template): string {
  const marks = new Map(slots.map((name, at) => [name, mark(at)]))
  return texts.map((text, at) => text + (marks.get(names[at] ?? '') ?? '')).join('')
}

/** Puts the variables back. A mark in the original text stays text unless it contains the index of a variable. */
function readMarks(marked: string, template: Template): Template {
  const texts: string[] = []
  const names: string[] = []
  let text = ''
  for (const [index, part] of marked.split(MARK).entries()) {
    const name = index % 2 === 1 ? template.slots[Number(part)] : undefined
    if (name === undefined) {
      text += part
      continue
    }
    texts.push(text)
    names.push(name)
    text = ''
  }
  return { slots: [...new Set(names)], texts: [...texts, text], names }
}
