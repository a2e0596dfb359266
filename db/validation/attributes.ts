/**
 * Finds attribute values in HTML as a browser would, and decodes variables that an editor has percent-encoded in
 * them. Reads each character at most twice.
 */

import { compileTemplate, isSlotName, type Template } from './slots.ts'

/** Where an attribute's value is in the HTML, without its quotes. */
type AttributeValue = { start: number; end: number; isQuoted: boolean }

const isSpace = (character: string | undefined): boolean => character !== undefined && /\s/.test(character)

/** The end of an unquoted value: a space or the end of its tag. */
function endOfUnquoted(html: string, start: number): number {
  let end = start
  while (end < html.length && html[end] !== '>' && !isSpace(html[end])) end += 1
  return end
}

/** Collects the attribute values of the tag that starts at `start`. @returns where the tag ends. */
function readTag(html: string, start: number, values: AttributeValue[]): number {
  let isAfterEquals = false
  for (let at = start; at < html.length; at += 1) {
    const character = html[at]
    if (character === '>') return at + 1
    if (isSpace(character)) continue
    if (!isAfterEquals) {
      isAfterEquals = character === '='
      continue
    }
    isAfterEquals = false
    if (character === '"' || character === "'") {
      const end = html.indexOf(character, at + 1)
      if (end < 0) return html.length
      values.push({ start: at + 1, end, isQuoted: true })
      at = end
      continue
    }
    const end = endOfUnquoted(html, at)
    values.push({ start: at, end, isQuoted: false })
    at = end - 1
  }
  return html.length
}

/** Returns the values of all attributes in document order. Comments have none. */
function attributeValues(html: string): AttributeValue[] {
  const values: AttributeValue[] = []
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at)) {
    if (html.startsWith('<!--', at)) {
      const end = html.indexOf('-->', at + 4)
      if (end < 0) break
      at = end
    } else if (/[a-z]/i.test(html[at + 1] ?? '')) at = readTag(html, at + 1, values)
    else at += 1
  }
  return values
}

/** Compiles an HTML template, and records which of its variables are in quoted attributes. @throws TemplateFault */
export function compileHtml(html: string): Template {
  const template = compileTemplate(html)
  const values = attributeValues(html).filter(({ isQuoted }) => isQuoted)
  const quoted = new Set<number>()
  let [at, next] = [0, 0]
  for (const [index, text] of template.texts.entries()) {
    if (index === template.names.length) break
    at += text.length
    while ((values[next]?.end ?? Number.POSITIVE_INFINITY) <= at) next += 1
    if ((values[next]?.start ?? Number.POSITIVE_INFINITY) <= at) quoted.add(index)
    at = html.indexOf('}}', at) + 2
  }
  return { ...template, quoted }
}

/** A variable as editors encode it in links, `%7B%7Bname%7D%7D`. A name has at most 100 encoded characters. */
const ENCODED = /%7b%7b((?:%(?!7[bd])|[^%{}"'<>]){1,900})%7d%7d/gi

function nameIn(encoded: string): string | null {
  try {
    const name = decodeURIComponent(encoded).trim()
    return isSlotName(name) ? name : null
  } catch {
    return null
  }
}

/** Decodes the encoded variables in attributes. @returns the new HTML and the names of the decoded variables. */
export function decodeVariables(html: string): { html: string; decoded: string[] } {
  const names = new Set<string>()
  let [decoded, done] = ['', 0]
  for (const { start, end } of attributeValues(html)) {
    const value = html.slice(start, end).replace(ENCODED, (encoded, inside: string) => {
      const name = nameIn(inside)
      if (name === null) return encoded
      names.add(name)
      return `{{${name}}}`
    })
    decoded += html.slice(done, start) + value
    done = end
  }
  return { html: decoded + html.slice(done), decoded: [...names] }
}
