/**
 * The template grammar: text and `{{name}}` slots, nothing else (DECISIONS: Variables).
 * Promises: linear time and one pass. Text outside of slots is sent as it was written, values are never read as
 * template again, and the same source and variables always give the same bytes. Handlebars only escapes: it
 * would misread `a.b`, `1`, `true`, `else` and backslashes, and takes 47 s over 96 kB of nested blocks (measured,
 * 4.7.10). Must not run helpers or reach prototypes.
 */

import type Handlebars from 'handlebars'
import runtime from 'handlebars/runtime.js'
import { fill } from '../fill.ts'
import { utf8Bytes } from './strings.ts'
import { TEXTS } from './texts.ts'

/** The source is not a valid template; the message names the line and the construct. */
export class TemplateFault extends Error {
  override name = 'TemplateFault'
}

/**
 * Compiled form. `slots` unique, by first appearance; `names[i]` stands between `texts[i]` and the next. `quoted` has
 * the places of those names that are in quoted attributes, where `=` and a backtick need no escape.
 */
export type Template = {
  readonly slots: readonly string[]
  readonly texts: readonly string[]
  readonly names: readonly string[]
  readonly quoted?: ReadonlySet<number>
}

/** The slot that the service fills itself, where it can (DECISIONS: Unsubscribe link). */
export const UNSUBSCRIBE_SLOT = 'unsubscribe_url'

const LONGEST_EXCERPT = 60

/**
 * Compiles a template, or throws a TemplateFault on anything but text and slots: paths, blocks, partials, helpers,
 * comments, `{{{…}}}`, `{{&…}}`, `{{@x}}`, `{{~x}}`. A name is letters, digits, `_`, `-` and `.`, taken literally; a
 * backslash before a slot is text. DECISIONS: Variables.
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
 * The template with its slots filled, html-escaped or as they are. Only own properties count. Throws a
 * RangeError when a slot has no value: ask missingSlots first. DECISIONS: Variables, HTML of template emails.
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

/** How many bytes of UTF-8 `fillSlots` would make, without making them. Every slot must have a value. */
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

/** Without its compiler, which takes 3 MB; the types are the whole's. */
const { escapeExpression } = runtime as unknown as typeof Handlebars

export const escapeHtml = (text: string): string => escapeExpression(text)

/** Yahoo Mail breaks links with `&#x3D;`. */
const escapeQuoted = (text: string): string =>
  escapeHtml(text).replaceAll('&#x3D;', '=').replaceAll('&#x60;', '`')

const escapeAt = ({ quoted }: Template, at: number, value: string): string =>
  quoted?.has(at) ? escapeQuoted(value) : escapeHtml(value)

/** The slots that the variables leave without a value, in the order given. */
export const missingSlots = (
  slots: readonly string[],
  variables: Readonly<Record<string, string>> | null,
): string[] => slots.filter((slot) => variables === null || !Object.hasOwn(variables, slot))

/** The end of a tag, third and fourth brace included, so that `{{{x}}}` is read whole. */
function tagEnd(source: string, open: number): number {
  let end = source.indexOf('}}', open)
  if (end < 0) throw fault(source, open, fill(TEXTS.notClosed, { start: excerpt(source.slice(open)) }))
  for (end += 2; source[end] === '}'; ) end += 1
  return end
}

const SLOT_NAME = /^[\p{L}\p{Nd}_.-]+$/u

/** Whether a slot can have this name: another property of a contact fills none. */
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
