/**
 * The documentation page: guides, every operation with a call to paste in the language that the reader chose, every
 * code with what to do about it. Drawn from the same routes as the API's description. Pure; is read without script.
 */
import { createHash } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { VERSION } from '../../db/process/version.ts'
import { escapeHtml } from '../../db/validation/slots.ts'
import { STATUS } from '../http/errors.ts'
import type { About, Described } from './about.ts'
import { EXPLAINED } from './codes.ts'
import { COMPONENTS } from './components.ts'
import { exampleOf } from './example.ts'
import { GUIDES } from './guides.ts'
import { type JsonSchema, schemaFields } from './json-schema.ts'
import { GROUPS, headersOf, refusalsOf, whoMayCall } from './openapi.ts'
import { LANGUAGES, pathAsked, type Sample, samplesOf } from './samples.ts'
import { SCRIPT } from './script.ts'
import { fill, HOME, type Shown, variablesIn } from './shown.ts'
import { STYLE } from './style.ts'

type Outcome = About['answers'][number]

const all = (parts: readonly string[]): string => parts.join('\n')

const inline = (words: string): string =>
  words
    .split('`')
    .map((part, index) => (index % 2 === 1 ? `<code>${escapeHtml(part)}</code>` : escapeHtml(part)))
    .join('')

const listing = (text: string): string => `<pre tabindex="0"><code>${escapeHtml(text)}</code></pre>`

const link = (id: string, text: string): string => `<a href="#${id}">${text}</a>`

const nameOf = ($ref: string): string => $ref.split('/').at(-1) ?? ''

/** A type in a few words, such as `array of string`. */
function typeOf({ $ref, type, format, items, additionalProperties }: JsonSchema): string {
  if (type === 'array') return `array of ${typeOf(items as JsonSchema)}`
  if (typeof $ref === 'string') return nameOf($ref)
  if (additionalProperties) return 'map of strings'
  return [type].flat().includes('null') ? `${format ?? [type].flat()[0]} or null` : String(format ?? type)
}

/** The fields of a component, as those of a body. */
const fieldsOfAnswer = ({ properties, required }: JsonSchema): ReturnType<typeof schemaFields> =>
  Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) => ({
    name,
    required: (required as string[]).includes(name),
    schema,
  }))

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

function fieldTable(title: string, fields: ReturnType<typeof schemaFields>): string {
  if (fields.length === 0) return ''
  const rows = fields.map(({ name, required, schema }) => {
    const { description = '' } = schema
    const bounds = boundsOf(schema)
    const note = [inline(String(description)), bounds && `<span class="soft">${escapeHtml(bounds)}</span>`]
    const needed = required ? ' <span class="soft">required</span>' : ''
    return `<tr><td><code>${name}</code>${needed}</td><td>${typeOf(schema)}</td><td>${note.filter(Boolean).join('<br>')}</td></tr>`
  })
  const head = '<thead><tr><th>Field</th><th>Type</th><th>What it is</th></tr></thead>'
  return `<h4>${title}</h4><div class="wide" tabindex="0"><table>${head}<tbody>${all(rows)}</tbody></table></div>`
}

const className = (language: string): string => language.toLowerCase().replace(/\W/g, '')

/** Calls to paste, each in its language: the page shows one of them at a time, the first where curl has none. */
function calls(samples: readonly Sample[]): string {
  const each = samples.map(
    ({ title, text }) => `<div class="in ${className(title)}"><h4>${title}</h4>${listing(text)}</div>`,
  )
  return each.length === 0 ? '' : `<div>${all(each)}</div>`
}

function wire(route: Described): string {
  const outcomes: Readonly<Record<string, Outcome>> = route.about.answers
  // Integers are keys in ascending order: a replay would come first.
  const status = '201' in outcomes ? '201' : (Object.keys(outcomes)[0] ?? '')
  const body = outcomes[status]?.body
  const headers = Object.entries(headersOf(route, Number(status))).map(
    ([name, { schema }]) => `${name}: ${exampleOf(schema, COMPONENTS)}`,
  )
  const example = body && JSON.stringify(exampleOf(COMPONENTS[body], COMPONENTS), null, 2)
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, ...(example ? ['', example] : [])]
  return listing(lines.join('\n'))
}

/** What answers hold, field by field; those that only wrap others are shown where they are answered. */
function objects(): string {
  const shown = Object.entries(COMPONENTS).map(([name, schema]) => {
    const fields = fieldsOfAnswer(schema)
    return `<section><h3 id="${name}">${name}</h3>${fieldTable('Fields', fields)}</section>`
  })
  return `<h2>Objects</h2>${all(shown)}`
}

/** The IDs that the reader has to set before a call of a route can be pasted. */
function variables({ path, about }: Described): string {
  const names = variablesIn([pathAsked(path), about.example])
  if (names.length === 0) return ''
  const set = names.map((name) => `<code>export ${name}=…</code>`).join(' and ')
  return `<p class="soft">Set the IDs before you paste a call: ${set}.</p>`
}

function operation(route: Described, shown: Shown): string {
  const { method, path, about, body, query } = route
  const notes = about.notes ?? {}
  const inBatch = body?.batch
    ? `Each of <code>${body.batch.field}</code> (at most ${body.batch.most})`
    : 'Body'
  const answers = Object.entries<Outcome>(about.answers).map(
    ([status, { when, body: shape }]) =>
      `<tr><td>${status}</td><td>${inline(when)}${shape ? ` ${link(shape, shape)}` : ''}</td></tr>`,
  )
  const refusals = refusalsOf(route)
    .toSorted((one, other) => STATUS[one] - STATUS[other])
    .map((code) => link(code, `<code>${STATUS[code]} ${code}</code>`))
  return `<section>
<h3 id="${about.id}"><span class="verb ${method}">${method}</span><code>${path}</code></h3>
<p>${escapeHtml(about.summary)}. ${(about.description ?? []).map(inline).join(' ')}</p>
<p class="soft">${inline(whoMayCall(route))}</p>
${variables(route)}
${calls(samplesOf(route, shown))}
${fieldTable('Query', query ? schemaFields(query.schema, notes) : [])}
${fieldTable(inBatch, body ? schemaFields(body.schema, notes) : [])}
<h4>Answers</h4><table><tbody>${all(answers)}</tbody></table>
${wire(route)}
<h4>Refusals</h4><p>${refusals.join(' · ')}</p>
</section>`
}

function codes(): string {
  const entries = Object.entries(EXPLAINED).map(
    ([code, { meaning, remedy }]) =>
      `<div id="${code}"><dt><code>${STATUS[code as keyof typeof STATUS]} ${code}</code></dt><dd>${inline(meaning)} ${inline(remedy)}</dd></div>`,
  )
  return `<h2 id="codes">Codes</h2><dl class="codes">${all(entries)}</dl>`
}

/** The search, which needs the script, and the choice of a language, which does not. */
function finder(): string {
  const choices = LANGUAGES.map(
    (name, index) =>
      `<label><input type="radio" name="language" id="in-${className(name)}"${index === 0 ? ' checked' : ''}> ${name}</label>`,
  )
  return `<div id="search" hidden><input type="search" aria-label="Search the documentation" placeholder="Search"><output></output></div>
<fieldset><legend>Calls in</legend>${all(choices)}</fieldset>`
}

function nav(routes: readonly Described[]): string {
  const groups = Object.keys(GROUPS).map((group) => {
    const own = routes.filter(({ about }) => about.group === group)
    return `<strong>${group}</strong>${all(own.map(({ about }) => link(about.id, escapeHtml(about.summary))))}`
  })
  const guides = GUIDES.map(({ id, title }) => link(id, title))
  const objects = Object.keys(COMPONENTS).map((name) => link(name, name))
  return `<nav aria-label="Contents">${finder()}<strong>Guides</strong>${all(guides)}${all(groups)}<strong>Objects</strong>${all(objects)}<strong>Reference</strong>${link('codes', 'Codes')}<a href="/openapi.json">openapi.json</a></nav>`
}

const digest = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** What the page may do: nothing but show itself in its own style, and run its own script. */
export const policy = (): string =>
  `default-src 'none'; style-src ${digest(STYLE)}; script-src ${digest(SCRIPT)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** The whole page. @param home where the service is, for the calls to paste. */
export function documentation(routes: readonly Described[], home: string, shown: Shown): string {
  const groups = Object.entries(GROUPS).map(([group, words]) => {
    const own = routes.filter(({ about }) => about.group === group)
    return `<h2>${group}</h2><p>${words}</p>${all(own.map((route) => operation(route, shown)))}`
  })
  const filled = (text: string): string => fill(text, shown).replaceAll(HOME, escapeHtml(home))
  const filledSample = ({ title, text, given }: Sample): Sample => ({
    title,
    text: fill(given ? `${given}\n\n${text}` : text, shown),
  })
  const guides = GUIDES.map(
    ({ id, title, html, samples = [] }) =>
      `<section><h3 id="${id}">${title}</h3>${filled(html)}${calls(samples.map(filledSample))}</section>`,
  )
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
<a href="/openapi.json">openapi.json</a>. Version ${VERSION}.</p>
</header>
${nav(routes)}
<main>
<h2>Guides</h2>
${all(guides)}
${all(groups)}
${objects()}
${codes()}
</main>
</div>
<script>${SCRIPT}</script>
</body>
</html>
`
}
