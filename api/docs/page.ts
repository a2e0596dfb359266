/**
 * The documentation page: guides, every operation with calls to paste, and every error code with its remedy.
 * It is made from the same routes as the API's description, and works without script. The views escape all
 * values.
 */

import { createHash } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import { VERSION } from '../../db/process/version.ts'
import { entriesOf } from '../../db/validation/keys.ts'
import { STATUS } from '../http/errors.ts'
import { compileViews } from '../http/views.ts'
import type { About, Described } from './about.ts'
import { EXPLAINED } from './codes.ts'
import { COMPONENTS } from './components.ts'
import { buildExample } from './example.ts'
import { GUIDES, type Guide, guideHtml } from './guides.ts'
import { type JsonSchema, schemaFields } from './json-schema.ts'
import { GROUPS, listHeaders, listRefusals, whoMayCall } from './openapi.ts'
import { buildSamples, filledSamples, LANGUAGES, pathAsked, type Sample } from './samples.ts'
import { SCRIPT } from './script.ts'
import { fill, type Shown, variablesIn } from './shown.ts'
import { STYLE } from './style.ts'

type Response = About['answers'][number]

const render = compileViews(join(import.meta.dirname, 'views'))

/** Splits text into parts, with code in backticks. */
const inline = (text: string) => text.split('`').map((part, index) => ({ code: index % 2 === 1, text: part }))

const nameOf = ($ref: string): string => $ref.split('/').at(-1) ?? ''

/** Describes a type briefly, such as `array of string`. */
function describeType({ $ref, type, format, items, additionalProperties }: JsonSchema): string {
  if (type === 'array') return `array of ${describeType(items ?? {})}`
  if (typeof $ref === 'string') return nameOf($ref)
  if (additionalProperties) return 'map of strings'
  return [type].flat().includes('null') ? `${format ?? [type].flat()[0]} or null` : String(format ?? type)
}

/** Returns the fields of a component in the form of a body's fields. */
const componentFields = ({ properties, required }: JsonSchema): ReturnType<typeof schemaFields> =>
  Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    required: required?.includes(name) ?? false,
    schema,
  }))

function describeBounds(schema: JsonSchema): string {
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

const fieldTable = (title: string, fields: ReturnType<typeof schemaFields>) => ({
  title: inline(title),
  rows: fields.map(({ name, required, schema }) => {
    const { description = '' } = schema
    const note = description === '' ? [] : inline(String(description))
    return { name, required, type: describeType(schema), note, bounds: describeBounds(schema) }
  }),
})

const className = (language: string): string => language.toLowerCase().replace(/\W/g, '')

const toCalls = (samples: readonly Sample[]) =>
  samples.map(({ title, text }) => ({ title, class: className(title), text }))

function renderResponse(route: Described): string {
  const responses: Readonly<Record<string, Response>> = route.about.answers
  // Integer keys are in ascending order, so a replay would come first.
  const status = '201' in responses ? '201' : (Object.keys(responses)[0] ?? '')
  const body = responses[status]?.body
  const headers = Object.entries(listHeaders(route, Number(status))).map(
    ([name, { schema }]) => `${name}: ${buildExample(schema, COMPONENTS)}`,
  )
  const example = body && JSON.stringify(buildExample(COMPONENTS[body], COMPONENTS), null, 2)
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, ...(example ? ['', example] : [])]
  return lines.join('\n')
}

function toOperation(route: Described, shown: Shown) {
  const { method, path, about, body, query } = route
  const notes = about.notes ?? {}
  const title = body?.batch ? `Each of \`${body.batch.field}\` (at most ${body.batch.most})` : 'Body'
  const errors = listRefusals(route).toSorted((one, other) => STATUS[one] - STATUS[other])
  return {
    ...{ id: about.id, method, path },
    description: inline(`${about.summary}. ${(about.description ?? []).join(' ')}`),
    access: inline(whoMayCall(route)),
    variables: variablesIn([pathAsked(path), about.example]),
    calls: toCalls(buildSamples(route, shown)),
    query: fieldTable('Query', query ? schemaFields(query.schema, notes) : []),
    body: fieldTable(title, body ? schemaFields(body.schema, notes) : []),
    responses: Object.entries<Response>(about.answers).map(([status, { when, body: shape }]) => ({
      ...{ status, shape },
      when: inline(when),
    })),
    wire: renderResponse(route),
    errors: errors.map((code) => ({ code, status: STATUS[code] })),
  }
}

function buildContents(routes: readonly Described[]) {
  const groups = Object.keys(GROUPS).map((title) => ({
    title,
    links: routes
      .filter(({ about }) => about.group === title)
      .map(({ about }) => ({ href: `#${about.id}`, text: about.summary })),
  }))
  const objects = Object.keys(COMPONENTS).map((name) => ({ href: `#${name}`, text: name }))
  return [
    { title: 'Guides', links: GUIDES.map(({ id, title }) => ({ href: `#${id}`, text: title })) },
    ...groups,
    { title: 'Objects', links: objects },
    {
      title: 'Reference',
      links: [
        { href: '#codes', text: 'Codes' },
        { href: '/openapi.json', text: 'openapi.json' },
        { href: '/postman.json', text: 'Postman collection' },
        { href: '/llms.txt', text: 'llms.txt' },
      ],
    },
  ]
}

const toGuide = (guide: Guide, shown: Shown) => ({
  ...{ id: guide.id, title: guide.title },
  html: new Handlebars.SafeString(guideHtml(fill(guide.markdown, shown))),
  samples: toCalls(filledSamples(guide, shown)),
  examples: guide.examples.map(({ type, body }) => ({ type, body: JSON.stringify(body, null, 2) })),
})

const digest = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Returns the page's Content-Security-Policy, which allows only its own style and script. */
export const policy = (): string =>
  `default-src 'none'; style-src ${digest(STYLE)}; script-src ${digest(SCRIPT)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

export const documentation = (routes: readonly Described[], shown: Shown): string =>
  render('page', {
    style: new Handlebars.SafeString(STYLE),
    script: new Handlebars.SafeString(SCRIPT),
    version: VERSION,
    languages: LANGUAGES.map((name) => ({ name, class: className(name) })),
    contents: buildContents(routes),
    guides: GUIDES.map((guide) => toGuide(guide, shown)),
    groups: Object.entries(GROUPS).map(([name, description]) => ({
      ...{ name, description },
      operations: routes
        .filter(({ about }) => about.group === name)
        .map((route) => toOperation(route, shown)),
    })),
    objects: Object.entries(COMPONENTS).map(([name, schema]) => ({
      name,
      fields: fieldTable('Fields', componentFields(schema)),
    })),
    codes: entriesOf(EXPLAINED).map(([code, { meaning, remedy }]) => ({
      ...{ code, status: STATUS[code] },
      text: inline(`${meaning} ${remedy}`),
    })),
  })
