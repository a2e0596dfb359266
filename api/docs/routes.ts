/**
 * GET /openapi.json and GET /docs: the API, described for programs and for people.
 * Promises: public, no team's data; drawn once in a process, then the same bytes with an ETag.
 */
import { createHash } from 'node:crypto'
import type { Answer } from '../errors.ts'
import { type PublicRoute, publicRoute, type Request, type Route } from '../route.ts'
import type { Docs, Drawn } from './drawn.ts'
import { openApi } from './openapi.ts'
import { documentation, policy } from './page.ts'

/** In seconds. */
const FRESH_FOR = 300

/** Draws at the first call. */
function once(draw: () => string, headers: Record<string, string>): () => Drawn {
  let drawn: Drawn | null = null
  return () => {
    if (drawn) return drawn
    const body = draw()
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
    const caching = { ETag: etag, 'Cache-Control': `public, max-age=${FRESH_FOR}` }
    drawn = { body, headers: { ...caching, 'X-Content-Type-Options': 'nosniff', ...headers } }
    return drawn
  }
}

/** Makes a process's descriptions of these routes. */
export const createDocs = (routes: readonly Route[]): Docs => ({
  openapi: once(() => JSON.stringify(openApi(routes)), {
    'Content-Type': 'application/json; charset=utf-8',
    'Access-Control-Allow-Origin': '*',
  }),
  page: once(() => documentation(routes), {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy(),
    'Referrer-Policy': 'no-referrer',
  }),
})

/** The drawn text, or 304 to whoever has it. */
function unlessKnown({ headers: asked }: Request, { body, headers }: Drawn): Answer {
  const tags = (asked['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  const known = tags.some((tag) => tag === headers.ETag || tag === '*')
  return known ? { status: 304, headers } : { status: 200, body, headers }
}

export const docsRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, docs.openapi()),
  }),
  publicRoute({
    method: 'GET',
    path: '/docs',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, docs.page()),
  }),
]
