/** Parses the forms of a page, with the values that a browser would submit. Pure. */

type PageForm = { action: string; fields: [name: string, value: string][] }

const unescaped = (text: string): string =>
  text
    .replace(/&#x([\dA-F]+);/gi, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')

const attribute = (tag: string, name: string): string | undefined => {
  const [, value] = new RegExp(`\\s${name}="([^"]*)"`).exec(tag) ?? []
  return value === undefined ? undefined : unescaped(value)
}

/** Converts line breaks to those of submitted forms. */
const sent = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')

/** Returns the value of a single-line field, as a browser cleans it. */
function cleaned(value: string, type: string): string {
  const line = value.replace(/[\r\n]/g, '')
  return type === 'email' ? line.trim() : line
}

const chosen = (select: string): string => {
  const options = [...select.matchAll(/<option[^>]*>/g)].map(([tag]) => tag)
  return attribute(options.find((tag) => / selected/.test(tag)) ?? options[0] ?? '', 'value') ?? ''
}

const CONTROLS = /<input[^>]*>|<select[^>]*>.*?<\/select>|<textarea[^>]*>.*?<\/textarea>/gs

function fieldsOf(html: string): [string, string][] {
  return [...html.matchAll(CONTROLS)].flatMap(([control]): [string, string][] => {
    const [tag = ''] = /^<[^>]*>/.exec(control) ?? []
    const name = attribute(tag, 'name')
    if (name === undefined) return []
    if (tag.startsWith('<select')) return [[name, chosen(control)]]
    // A browser drops a textarea's first line break.
    if (tag.startsWith('<textarea'))
      return [[name, sent(unescaped(control.slice(tag.length, -'</textarea>'.length).replace(/^\r?\n/, '')))]]
    const type = attribute(tag, 'type') ?? 'text'
    if ((type === 'checkbox' || type === 'radio') && !/ checked/.test(tag)) return []
    const value = attribute(tag, 'value') ?? (type === 'checkbox' ? 'on' : '')
    return [[name, type === 'hidden' ? value : cleaned(value, type)]]
  })
}

/** Returns the forms of a page that change something. @param action after /dashboard. */
const formsIn = (html: string): PageForm[] =>
  [...html.matchAll(/<form[^>]*method="post"[^>]*>(.*?)<\/form>/gs)].map(([form, inner = '']) => ({
    action: (attribute(/^<form[^>]*>/.exec(form)?.[0] ?? '', 'action') ?? '').replace(/^\/dashboard/, ''),
    fields: fieldsOf(inner),
  }))

/** Returns the fields of the page's form for this path. @throws Error if the page has no such form. */
export function formTo(html: string, path: string): Record<string, string[]> {
  const form = formsIn(html).find(({ action }) => action.split('?')[0] === path)
  if (!form) throw new Error(`the page has no form to ${path}: ${formsIn(html).map(({ action }) => action)}`)
  const names = [...new Set(form.fields.map(([name]) => name))]
  return Object.fromEntries(
    names.map((name) => [name, form.fields.filter(([each]) => each === name).map(([, value]) => value)]),
  )
}
