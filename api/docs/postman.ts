/**
 * The API as a Postman collection (format 2.1), made from the same routes as the API's description. The address, the
 * key and the IDs of examples are variables of the collection. Pure.
 */
import { VERSION } from '../../db/process/version.ts'
import type { Described } from './about.ts'
import { GROUPS } from './openapi.ts'
import { buildCall, type Call } from './samples.ts'
import { type Shown, variablesIn } from './shown.ts'

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json'

const variable = (name: string): string => `{{${name}}}`

/** Writes shell variables such as $ID as Postman does. */
const withVariables = (text: string): string =>
  text.replaceAll(/\$([A-Z_]+)\b/g, (_, name: string) => variable(name))

function buildUrl(call: Call) {
  const raw = variable('HELIOGRAPH_URL') + withVariables(call.path)
  const [address = '', query] = raw.split('?')
  const [host = '', ...path] = address.split('/')
  const parameters = query?.split('&').map((each) => {
    const [key, value] = each.split('=')
    return { key, value }
  })
  return { raw, host: [host], path, ...(parameters ? { query: parameters } : {}) }
}

/** A file is chosen in Postman, because a collection can't contain one. */
function buildBody({ body, file }: Call) {
  if (file) return { mode: 'file', file: { src: null } }
  const raw = withVariables(JSON.stringify(body, null, 2))
  return { mode: 'raw', raw, options: { raw: { language: 'json' } } }
}

function buildItem(route: Described, shown: Shown) {
  const { summary, description = [] } = route.about
  const call = buildCall(route, shown)
  const type = call.file?.type ?? (call.body && 'application/json')
  return {
    name: summary,
    request: {
      method: call.method,
      header: type ? [{ key: 'Content-Type', value: type }] : [],
      url: buildUrl(call),
      description: description.join('\n\n'),
      ...(type ? { body: buildBody(call) } : {}),
      ...(call.isPublic ? { auth: { type: 'noauth' } } : {}),
    },
    response: [],
  }
}

export function postmanCollection(routes: readonly Described[], shown: Shown) {
  const calls = routes.map((route) => buildCall(route, shown))
  const ids = variablesIn(calls.map(({ path, body }) => [path, body]))
  const values = { HELIOGRAPH_URL: shown.home, HELIOGRAPH_KEY: '' }
  return {
    info: {
      name: 'Heliograph API',
      description: `Version ${VERSION}. Set HELIOGRAPH_KEY to an API key, and the IDs to those of your team.`,
      schema: SCHEMA,
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: variable('HELIOGRAPH_KEY'), type: 'string' }] },
    variable: [...Object.entries(values), ...ids.map((name) => [name, ''])].map(([key, value]) => ({
      ...{ key, value, type: 'string' },
    })),
    item: Object.entries(GROUPS).map(([name, description]) => ({
      ...{ name, description },
      item: routes.filter(({ about }) => about.group === name).map((route) => buildItem(route, shown)),
    })),
  }
}
