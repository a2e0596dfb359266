/**
 * Converts an HTML email to plain text, with links as `text (URL)` and a line per list item and table row. Leaves out
 * titles, styles and scripts. Size and depth are limited.
 */
import { compile, type DomNode, type FormatCallback } from 'html-to-text'
import { LARGEST_PART } from './strings.ts'

/** Deeper elements are left out. Real emails aren't that deep. */
const MAX_DEPTH = 200
/** The parser's time is quadratic in the number of open elements: 87 s for 200,000 (measured, 10.0.1). */
const MAX_OPEN = 1_000
/** Elements that need no end tag. */
const ENDED_BY_THEMSELVES = new Set(
  'area base br col dd dt embed hr img input li link meta option p source tbody td tfoot th thead tr wbr'.split(
    ' ',
  ),
)

/** Cuts the HTML where too many elements are open. */
function bounded(html: string): string {
  const open = new Map<string, number>()
  let depth = 0
  for (const { 1: end, 2: given = '', index } of html.matchAll(/<(\/?)([a-z][a-z0-9:-]{0,50})/gi)) {
    const name = given.toLowerCase()
    if (ENDED_BY_THEMSELVES.has(name)) continue
    const count = open.get(name) ?? 0
    if (end && count === 0) continue
    open.set(name, count + (end ? -1 : 1))
    depth += end ? -1 : 1
    if (depth > MAX_OPEN) return html.slice(0, index)
  }
  return html
}

/** Shows the alternative text of an image. */
const alternativeText: FormatCallback = ({ attribs }, _, builder) => {
  if (attribs?.alt) builder.addInline(` ${attribs.alt} `)
}

const row: FormatCallback = ({ children }, walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 1 })
  walk(children, builder)
  builder.closeBlock({ trailingLineBreaks: 1 })
}

const BLOCKS = new Set(['p', 'div', 'center'])

/** Returns the content of the only block in a cell, so that the row stays on one line. */
function contentOf(children: DomNode[]): DomNode[] {
  const shown = children.filter(({ type, data }) => type !== 'comment' && (type !== 'text' || data?.trim()))
  const [only, ...others] = shown
  return only?.children && others.length === 0 && BLOCKS.has(only.name ?? '')
    ? contentOf(only.children)
    : children
}

const cell: FormatCallback = ({ children }, walk, builder) => {
  walk(contentOf(children ?? []), builder)
  builder.addInline(' ')
}

const SKIPPED = ['head', 'title', 'style', 'script', 'template', 'noscript', 'svg'].map((selector) => ({
  selector,
  format: 'skip',
}))
const HEADINGS = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
  selector,
  options: { uppercase: false },
}))
const CELLS = ['td', 'th'].map((selector) => ({ selector, format: 'cell' }))

const convert = compile({
  wordwrap: false,
  formatters: { alternativeText, row, cell },
  limits: { maxInputLength: LARGEST_PART, maxDepth: MAX_DEPTH, ellipsis: '' },
  selectors: [
    ...SKIPPED,
    ...HEADINGS,
    ...CELLS,
    {
      selector: 'a',
      options: {
        linkBrackets: ['(', ')'],
        hideLinkHrefIfSameAsText: true,
        pathRewrite: (link: string) => link.trim(),
      },
    },
    { selector: 'li > p', format: 'paragraph', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
    { selector: 'img', format: 'alternativeText' },
    { selector: 'tr', format: 'row' },
    { selector: 'table', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
  ],
})

/** Returns the plain text of an HTML document or fragment, or '' if it shows no text. */
export const plainText = (html: string): string =>
  convert(bounded(html.slice(0, LARGEST_PART)))
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
