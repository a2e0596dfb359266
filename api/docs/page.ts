/**
 * The documentation page: guides, every operation with a call to paste, every code with what to do about it. Drawn from
 * the same routes as the API's description. Pure; needs no script.
 */
import { createHash } from 'node:crypto'
import { escapeHtml } from '../../db/text/slots.ts'
import { STATUS } from '../errors.ts'
import type { Route } from '../route.ts'
import type { Group } from './about.ts'
import { EXPLAINED } from './codes.ts'
import { GUIDES } from './guides.ts'
import { fieldsOf, type JsonSchema } from './json-schema.ts'
import { refusalsOf } from './openapi.ts'
import { STYLE } from './style.ts'

const GROUPS: readonly Group[] = ['Emails', 'WhatsApp', 'Contacts', 'Plans']

const all = (parts: readonly string[]): string => parts.join('\n')

const link = (id: string, text: string): string => `<a href="#${id}">${text}</a>`

/** A type in a few words, such as `array of string`. */
function typeOf({ type, format, items, additionalProperties }: JsonSchema): string {
  if (type === 'array') return `array of ${typeOf(items as JsonSchema)}`
  if (additionalProperties) return 'map of strings'
  return String(format ?? type)
}

/** The bounds of a type in a few words. */
function boundsOf(schema: JsonSchema): string {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum, maxProperties } = schema
  const span = (from: unknown, to: unknown, what: string): string[] => {
    if (to === undefined) return []
    return [from === undefined ? `at most ${to}${what}` : `${from} to ${to}${what}`]
  }
  const choice = Array.isArray(schema.enum) ? [schema.enum.join(', ')] : []
  return [
    ...span(minLength, maxLength, ' characters'),
    ...span(minItems, maxItems, ' items'),
    ...span(minimum, maximum, ''),
    ...span(undefined, maxProperties, ' keys'),
    ...choice,
  ].join('; ')
}

function fieldTable(title: string, fields: ReturnType<typeof fieldsOf>): string {
  if (fields.length === 0) return ''
  const rows = fields.map(({ name, required, schema }) => {
    const { description = '' } = schema
    const bounds = boundsOf(schema)
    const note = [
      escapeHtml(String(description)),
      bounds && `<span class="soft">${escapeHtml(bounds)}</span>`,
    ]
    const needed = required ? ' <span class="soft">required</span>' : ''
    return `<tr><td><code>${name}</code>${needed}</td><td>${typeOf(schema)}</td><td>${note.filter(Boolean).join('<br>')}</td></tr>`
  })
  const head = '<thead><tr><th>Field</th><th>Type</th><th></th></tr></thead>'
  return `<h4>${title}</h4><div class="wide" tabindex="0"><table>${head}<tbody>${all(rows)}</tbody></table></div>`
}

/** A call to paste. */
function curl({ method, path, access, about }: Route): string {
  const asked = path.replace(':email', 'ana@example.org')
  const lines = [
    `curl ${method === 'GET' || about?.example ? '' : `-X ${method} `}"$HELIOGRAPH_URL${asked}"`,
    ...(method === 'PATCH' ? ['-X PATCH'] : []),
    ...(access === 'public' ? [] : ['-H "Authorization: Bearer $HELIOGRAPH_KEY"']),
    ...(about?.example
      ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(about.example, null, 2)}'`]
      : []),
  ]
  return `<pre tabindex="0"><code>${escapeHtml(lines.join(' \\\n  '))}</code></pre>`
}

function whoMayCall({ access }: Route): string {
  if (access === 'public') return 'No credentials.'
  const who = access.kinds.includes('session') ? 'An API key or a session token' : 'An API key'
  return access.scope ? `${who}, scope <code>${access.scope}</code>.` : `${who}, any scope.`
}

function operation(route: Route): string {
  const { method, path, about, body, query } = route
  if (!about) return ''
  const notes = about.notes ?? {}
  const inBatch = body?.batch
    ? `Each of <code>${body.batch.field}</code> (at most ${body.batch.most})`
    : 'Body'
  const answers = Object.entries(about.answers).map(
    ([status, { when }]) => `<tr><td>${status}</td><td>${escapeHtml(when)}</td></tr>`,
  )
  const refusals = refusalsOf(route)
    .toSorted((one, other) => STATUS[one] - STATUS[other])
    .map((code) => link(code, `<code>${STATUS[code]} ${code}</code>`))
  return `<section>
<h3 id="${about.id}"><span class="verb ${method}">${method}</span><code>${path}</code></h3>
<p>${escapeHtml(about.summary)}. ${(about.description ?? []).map(escapeHtml).join(' ')}</p>
<p class="soft">${whoMayCall(route)}</p>
${curl(route)}
${fieldTable('Query', query ? fieldsOf(query.schema, notes) : [])}
${fieldTable(inBatch, body ? fieldsOf(body.schema, notes) : [])}
<h4>Answers</h4><table><tbody>${all(answers)}</tbody></table>
<h4>Refusals</h4><p>${refusals.join(' · ')}</p>
</section>`
}

function codes(): string {
  const entries = Object.entries(EXPLAINED).map(
    ([code, { meaning, remedy }]) =>
      `<div id="${code}"><dt><code>${STATUS[code as keyof typeof STATUS]} ${code}</code></dt><dd>${escapeHtml(meaning)} ${escapeHtml(remedy)}</dd></div>`,
  )
  return `<h2 id="codes">Codes</h2><dl class="codes">${all(entries)}</dl>`
}

function nav(routes: readonly Route[]): string {
  const groups = GROUPS.map((group) => {
    const own = routes.filter(({ about }) => about?.group === group)
    return `<strong>${group}</strong>${all(own.map(({ about }) => (about ? link(about.id, escapeHtml(about.summary)) : '')))}`
  })
  const guides = GUIDES.map(({ id, title }) => link(id, title))
  return `<nav aria-label="Contents"><strong>Guides</strong>${all(guides)}${all(groups)}<strong>Reference</strong>${link('codes', 'Codes')}<a href="/openapi.json">openapi.json</a></nav>`
}

/** What the page may do: nothing but show itself in its own style. */
export function policy(): string {
  const style = createHash('sha256').update(STYLE).digest('base64')
  const rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  return `default-src 'none'; style-src 'sha256-${style}'; ${rest}`
}

/** The whole page. */
export function documentation(routes: readonly Route[]): string {
  const groups = GROUPS.map((group) => {
    const own = routes.filter(({ about }) => about?.group === group)
    return `<h2>${group}</h2>${all(own.map(operation))}`
  })
  const guides = GUIDES.map(({ id, title, html }) => `<section><h3 id="${id}">${title}</h3>${html}</section>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Heliograph API</title>
<style>${STYLE}</style>
</head>
<body>
<div class="page">
<header>
<h1>Heliograph API</h1>
<p>Contacts, transactional email and WhatsApp templates over HTTP and JSON. The same in a form for programs:
<a href="/openapi.json">openapi.json</a>.</p>
</header>
${nav(routes)}
<main>
<h2>Guides</h2>
${all(guides)}
${all(groups)}
${codes()}
</main>
</div>
</body>
</html>
`
}
