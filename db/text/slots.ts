// Owns the template grammar: text and `{{name}}` slots, nothing else (decisions: slots).
// Promises one pass: values are never re-read as template, and the same source and variables give the same
// bytes for ever. Handlebars finds the slots, comments and escapes; our names are hidden from it, because it
// would read `a.b`, `1`, `true`, `this` or `else-x` as something other than names.
// Must not run helpers, reach prototypes, or know what a template is for.

import Handlebars from 'handlebars'

/** The source is no template of ours; the message says what is wrong and on which line. */
export class TemplateFault extends Error {
  override name = 'TemplateFault'
}

/** Compiled form. `slots` in order of first appearance, unique; `names[i]` goes between `texts[i]` and the next. */
export type Template = {
  readonly slots: readonly string[]
  readonly texts: readonly string[]
  readonly names: readonly string[]
}

/** Source with every slot name replaced by a token that Handlebars reads as a plain identifier. */
type Masked = { source: string; names: readonly string[]; token: RegExp }

/**
 * Compiles a template, or throws a TemplateFault on anything but text, comments and slots: paths, blocks,
 * partials, helpers, `{{{…}}}`, `{{&…}}`, `{{else}}`, `{{@x}}`, `~`. A name is letters, digits, `_`, `-`
 * and `.`, taken literally. Comments and `\{{` do what Handlebars makes of them. Source: decisions: slots.
 */
export const compileTemplate = (source: string): Template => {
  const masked = mask(source)
  const texts: string[] = []
  const names: string[] = []
  let text = ''
  for (const statement of parse(masked).body) {
    if (statement.type === 'ContentStatement') {
      text += unmask(masked, (statement as hbs.AST.ContentStatement).value)
    } else if (statement.type !== 'CommentStatement') {
      names.push(slotName(masked, statement))
      texts.push(text)
      text = ''
    }
  }
  texts.push(text)
  return { slots: [...new Set(names)], texts, names }
}

/**
 * The template with its slots filled, html-escaped or as they are. Only own properties count. Throws a
 * RangeError when a slot has no value: ask missingSlots first.
 */
export const fillSlots = (
  template: Template,
  variables: Readonly<Record<string, string>>,
  escape: 'html' | 'none',
): string => {
  let filled = template.texts[0] ?? ''
  for (const [at, name] of template.names.entries()) {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (value === undefined) throw new RangeError(`the slot ${name} has no value`)
    filled += escape === 'html' ? Handlebars.escapeExpression(value) : value
    filled += template.texts[at + 1] ?? ''
  }
  return filled
}

/** The slots that the variables leave without a value, in the order given. */
export const missingSlots = (
  slots: readonly string[],
  variables: Readonly<Record<string, string>> | null,
): string[] => slots.filter((slot) => variables === null || !Object.hasOwn(variables, slot))

/** `else` stays unmasked, so that Handlebars sees and refuses it. The tag is one the source does not hold. */
const mask = (source: string): Masked => {
  const taken = new Set(source.match(/s\d+_/g))
  let number = 0
  while (taken.has(`s${number}_`)) number += 1
  const names: string[] = []
  const maskedSource = source.replace(/(\{\{\s*)([\p{L}\p{Nd}_.-]+)(?=\s*\}\})/gu, (whole, open, name) => {
    if (name === 'else') return whole
    names.push(name)
    return `${open}s${number}_${names.length - 1}_`
  })
  return { source: maskedSource, names, token: new RegExp(`s${number}_(\\d+)_`, 'g') }
}

const unmask = ({ names, token }: Masked, text: string): string =>
  text.replace(token, (_whole, index) => names[Number(index)] ?? '')

/** Any failure is the source's fault, a stack overflow on blocks nested by the thousand included. */
const parse = (masked: Masked): hbs.AST.Program => {
  try {
    return Handlebars.parse(masked.source)
  } catch (error) {
    const [summary = '', excerpt = ''] = error instanceof Error ? error.message.split('\n') : []
    const line = /on line (\d+)/.exec(summary)?.[1] ?? /- (\d+):\d+$/.exec(summary)?.[1]
    const near = excerpt === '' ? '' : ` near ${unmask(masked, excerpt).trim()}`
    throw fault(line, `this cannot be read as text and {{name}} slots${near}`)
  }
}

const slotName = (masked: Masked, statement: hbs.AST.Statement): string => {
  const { line } = statement.loc.start
  if (statement.type !== 'MustacheStatement') throw fault(line, refused(statement, masked))
  const { path, params, hash, escaped, strip } = statement as hbs.AST.MustacheStatement & { escaped: boolean }
  const original = String(path.original)
  const written = unmask(masked, original)
  if (!escaped) throw fault(line, `{{{${written}}}} and {{&${written}}} are not allowed, only {{name}}`)
  if (params.length > 0 || hash) throw fault(line, `{{${written} …}} must not have parameters`)
  if (strip?.open || strip?.close) throw fault(line, `{{~${written}~}} is not allowed, only {{name}}`)
  // The mask catches every slot, so a name that comes through unmasked was not written as one.
  if (written === original)
    throw fault(line, `{{${written}}} is not a slot: a name is letters, digits, _, - and .`)
  return written
}

const refused = (statement: hbs.AST.Statement, masked: Masked): string => {
  const { path, name } = statement as { path?: { original?: unknown }; name?: { original?: unknown } }
  const written = unmask(masked, String(path?.original ?? name?.original ?? ''))
  const kind = statement.type.replace('Statement', '').toLowerCase()
  return `the ${kind} ${written} is not allowed, only {{name}}`
}

const fault = (line: number | string | undefined, problem: string): TemplateFault =>
  new TemplateFault(line === undefined ? problem : `line ${line}: ${problem}`)
