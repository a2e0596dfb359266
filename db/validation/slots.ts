/**
 * The template language: text and `{{name}}` variables (DECISIONS: Variables). Compiling is linear. Text
 * outside of variables is sent as written, values are never parsed as templates, and the same input always
 * produces the same bytes. Handlebars is only used to escape. It would misread `a.b`, `1`, `true`, `else` and
 * backslashes, and needs 47 s for 96 kB of nested blocks (measured, 4.7.10).
 */

import type Handlebars from 'handlebars'
import runtime from 'handlebars/runtime.js'
import { fill } from '../fill.ts'
import { utf8Bytes } from './strings.ts'
import { TEXTS } from './texts.ts'

/** The template is invalid. The message names the line and the construct. */
export class TemplateFault extends Error {
  override name = 'TemplateFault'
}

/**
 * `slots` are the unique variables in order of appearance. `names[i]` comes between `texts[i]` and `texts[i + 1]`.
 * `quoted` has the indexes of names in quoted attributes, where `=` and a backtick need no escaping.
 */
export type Template = {
  readonly slots: readonly string[]
  readonly texts: readonly string[]
  readonly names: readonly string[]
  readonly quoted?: ReadonlySet<number>
}

/** The variable that we can fill ourselves (DECISIONS: Unsubscribe link). */
export const UNSUBSCRIBE_SLOT = 'unsubscribe_url'

const LONGEST_EXCERPT = 60

/**
 * Compiles a template. A name consists of letters, digits, `_`, `-` and `.`, all literal. A backslash before a
 * variable is text.
 * @throws TemplateFault for paths, blocks, partials, helpers, comments, `{{{…}}}`, `{{&…}}`, `{{@x}}` and `{{~x}}`.
 */
export function compileTemplate(source: string): Template {
  const nul = source.indexOf('\0')
  if (nul >= 0) throw fault(source, nul, TEXTS.nul)
  const texts: string[] = []
  const names: string[] = []
  let done = 0
  for (let open = source.indexOf('{{'); open >= 0; open = source.indexOf('{{', done)) {
    texts.push(source.slice(done, open))
    done = tagEnd(source, open)
    names.push(slotName(source, open, done))
  }
  texts.push(source.slice(done))
  return { slots: [...new Set(names)], texts, names }
}

/**
 * Fills a template, with or without HTML escaping. Only own properties count. DECISIONS: HTML of template emails.
 * @throws RangeError if a variable has no value. Call `missingSlots` first.
 */
export function fillSlots(
  template: Template,
  variables: Readonly<Record<string, string>>,
  escaping: 'html' | 'none',
): string {
  let filled = template.texts[0] ?? ''
  for (const [at, name] of template.names.entries()) {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (value === undefined) throw new RangeError(fill(TEXTS.noValue, { name }))
    filled += escaping === 'html' ? escapeAt(template, at, value) : value
    filled += template.texts[at + 1] ?? ''
  }
  return filled
}

/** Returns the size of `fillSlots`' result in bytes of UTF-8. Every variable must have a value. */
export function filledBytes(
  template: Template,
  variables: Readonly<Record<string, string>>,
  escaping: 'html' | 'none',
): number {
  const sizes = new Map<string, number>()
  let size = template.texts.reduce((sum, text) => sum + utf8Bytes(text), 0)
  for (const [at, name] of template.names.entries()) {
    const key = template.quoted?.has(at) ? `"${name}"` : name
    const value = variables[name] ?? ''
    const known = sizes.get(key) ?? utf8Bytes(escaping === 'html' ? escapeAt(template, at, value) : value)
    sizes.set(key, known)
    size += known
  }
  return size
}

/** The runtime saves the 3 MB of the compiler. It has no separate types. */
const { escapeExpression } = runtime as unknown as typeof Handlebars

export const escapeHtml = (text: string): string => escapeExpression(text)

/** Leaves `=` and backticks, because Yahoo Mail breaks links that contain `&#x3D;`. */
const escapeQuoted = (text: string): string =>
  escapeHtml(text).replaceAll('&#x3D;', '=').replaceAll('&#x60;', '`')

const escapeAt = ({ quoted }: Template, at: number, value: string): string =>
  quoted?.has(at) ? escapeQuoted(value) : escapeHtml(value)

/** Returns the variables without a value, in the given order. */
export const missingSlots = (
  slots: readonly string[],
  variables: Readonly<Record<string, string>> | null,
): string[] => slots.filter((slot) => variables === null || !Object.hasOwn(variables, slot))

/** Returns the end of a tag, including a third and fourth brace, so that `{{{x}}}` is one tag. */
function tagEnd(source: string, open: number): number {
  let end = source.indexOf('}}', open)
  if (end < 0) throw fault(source, open, fill(TEXTS.notClosed, { start: excerpt(source.slice(open)) }))
  for (end += 2; source[end] === '}'; ) end += 1
  return end
}

const SLOT_NAME = /^[\p{L}\p{Nd}_.-]+$/u

export const isSlotName = (name: string): boolean => SLOT_NAME.test(name)

function slotName(source: string, open: number, end: number): string {
  const tag = source.slice(open, end)
  const name = /^\{\{\s*(\S+)\s*\}\}$/.exec(tag)?.[1]
  if (name !== undefined && isSlotName(name)) return name
  const problem = TEXTS.notVariable
  throw fault(source, open, `${excerpt(tag)} ${problem}`)
}

function excerpt(tag: string): string {
  const line = tag.slice(0, LONGEST_EXCERPT).replace(/\s+/g, ' ').trim()
  return tag.length > LONGEST_EXCERPT ? `${line}…` : line
}

const fault = (source: string, at: number, problem: string): TemplateFault =>
  new TemplateFault(fill(TEXTS.atLine, { line: source.slice(0, at).split(/\r\n?|\n/).length, problem }))
