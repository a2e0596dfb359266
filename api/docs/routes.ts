/**
 * GET /openapi.json and GET /docs: the API, described for programs and for people; GET / leads there.
 * Promises: public, no team's data; the same bytes with an ETag for a day.
 */
import { createHash } from 'node:crypto'
import type { Answer } from '../http/errors.ts'
import { type PublicRoute, publicRoutes, type Request } from '../http/route.ts'
import type { Described } from './about.ts'
import type { Docs, DocsDeps, Drawn } from './drawn.ts'
import { openApi } from './openapi.ts'

/** In seconds. */
const CACHE_MAX_AGE_S = 300

/** Renders again on each day, because examples have times that are to come. */
function daily(clock: () => Date, render: (now: Date) => Promise<Drawn>): () => Promise<Drawn> {
  let rendered: (Drawn & { day: string }) | null = null
  return async () => {
    const now = clock()
    const day = now.toISOString().slice(0, 10)
    if (rendered?.day === day) return rendered
    const { body, headers } = await render(now)
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
    const caching = { ETag: etag, 'Cache-Control': `public, max-age=${CACHE_MAX_AGE_S}` }
    rendered = { day, body, headers: { ...caching, 'X-Content-Type-Options': 'nosniff', ...headers } }
    return rendered
  }
}

/** `publicUrl` and `port` are where the service is. `domain` is what examples send from. */
type Place = { publicUrl: string | null; port: number; domain: string; clock?: () => Date }

export function createDocs(
  routes: readonly Described[],
  { publicUrl, port, domain, clock = () => new Date() }: Place,
): Docs {
  const home = publicUrl?.replace(/\/$/, '') ?? `http://localhost:${port}`
  return {
    openapi: daily(clock, async (now) => ({
      body: JSON.stringify(openApi(routes, publicUrl, { domain, now })),
      headers: { 'Content-Type': 'application/json; charset=utf-8', 'Access-Control-Allow-Origin': '*' },
    })),
    // Loaded for the first reader: a process that nobody reads it from saves the template compiler's memory.
    page: daily(clock, async (now) => {
      const { documentation, policy } = await import('./page.ts')
      return {
        body: documentation(routes, home, { domain, now }),
        headers: {
          'Content-Type': 'text/html; charset=utf-8',
          'Content-Security-Policy': policy(),
          'Referrer-Policy': 'no-referrer',
        },
      }
    }),
  }
}

/** The rendered text, or 304 to a client that has it. */
function unlessKnown({ headers: asked }: Request, { body, headers }: Drawn): Answer {
  const tags = (asked['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  const known = tags.some((tag) => tag === headers.ETag || tag === '*')
  return known ? { status: 304, headers } : { status: 200, body, headers }
}

const PLACES = { api: '/v1', docs: '/docs', openapi: '/openapi.json', dashboard: '/dashboard' }

const publicRoute = publicRoutes<DocsDeps>()

export const docsRoutes: readonly PublicRoute<DocsDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/',
    access: 'public',
    // Browsers name text/html; programs take anything.
    async handle({ headers }, { dashboard }) {
      const isBrowser = headers.accept?.includes('text/html') ?? false
      const { dashboard: pages, ...places } = PLACES
      if (isBrowser) {
        const type = { 'Content-Type': 'text/html; charset=utf-8' }
        const body = `<a href="${PLACES.docs}">${PLACES.docs}</a>\n`
        return { status: 302, body, headers: { ...type, Location: PLACES.docs, Vary: 'Accept' } }
      }
      const body = { name: 'Heliograph', ...places, ...(dashboard ? { dashboard: pages } : {}) }
      return { status: 200, body, headers: { Vary: 'Accept' } }
    },
  }),
  publicRoute({
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, await docs.openapi()),
  }),
  publicRoute({
    method: 'GET',
    path: '/docs',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, await docs.page()),
  }),
]
