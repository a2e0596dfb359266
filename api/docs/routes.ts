/**
 * GET /docs, /docs/GUIDE.md, /llms.txt, /openapi.json and /postman.json describe the API for people and for programs.
 * GET / leads there. All are public, contain no team's data, and are the same bytes with an ETag for a day.
 */
import { createHash } from 'node:crypto'
import { RequestError } from '../../db/errors.ts'
import type { Answer } from '../http/errors.ts'
import { type PublicRoute, publicRoutes, type Request } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import type { Described } from './about.ts'
import type { Docs, DocsDeps, Drawn } from './drawn.ts'
import { GUIDES } from './guides.ts'
import { guideMarkdown, llmsText } from './markdown.ts'
import { openApi } from './openapi.ts'
import { documentation, policy } from './page.ts'
import { postmanCollection } from './postman.ts'
import type { Shown } from './shown.ts'

/** In seconds. */
const CACHE_MAX_AGE_S = 300

/** Draws again on each day, since examples have times that are to come. */
function daily(clock: () => Date, draw: (now: Date) => string, headers: Record<string, string>): () => Drawn {
  let drawn: (Drawn & { day: string }) | null = null
  return () => {
    const now = clock()
    const day = now.toISOString().slice(0, 10)
    if (drawn?.day === day) return drawn
    const body = draw(now)
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
    const caching = { ETag: etag, 'Cache-Control': `public, max-age=${CACHE_MAX_AGE_S}` }
    drawn = { day, body, headers: { ...caching, 'X-Content-Type-Options': 'nosniff', ...headers } }
    return drawn
  }
}

/** Pages of any origin may read what programs need. */
const OPEN = { 'Access-Control-Allow-Origin': '*' }

/** `publicUrl` and `port` are where the service is. `domain` is what examples send from. */
type Place = { publicUrl: string | null; port: number; domain: string; clock?: () => Date }

export function createDocs(
  routes: readonly Described[],
  { publicUrl, port, domain, clock = () => new Date() }: Place,
): Docs {
  const home = publicUrl?.replace(/\/$/, '') ?? `http://localhost:${port}`
  const drawn = (type: string, draw: (shown: Shown) => string, headers: Record<string, string> = OPEN) =>
    daily(clock, (now) => draw({ home, domain, now }), {
      'Content-Type': `${type}; charset=utf-8`,
      ...headers,
    })
  const guides = new Map(
    GUIDES.map((guide) => [guide.id, drawn('text/markdown', (shown) => guideMarkdown(guide, shown))]),
  )
  return {
    openapi: drawn('application/json', (shown) => JSON.stringify(openApi(routes, publicUrl, shown))),
    postman: drawn('application/json', (shown) => JSON.stringify(postmanCollection(routes, shown))),
    page: drawn('text/html', (shown) => documentation(routes, shown), {
      'Content-Security-Policy': policy(),
      'Referrer-Policy': 'no-referrer',
    }),
    llms: drawn('text/plain', llmsText),
    guide: (id) => guides.get(id)?.() ?? null,
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
    handle: async (request, { docs }) => unlessKnown(request, docs.openapi()),
  }),
  publicRoute({
    method: 'GET',
    path: '/postman.json',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, docs.postman()),
  }),
  publicRoute({
    method: 'GET',
    path: '/docs',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, docs.page()),
  }),
  publicRoute({
    method: 'GET',
    path: '/docs/:guide.md',
    access: 'public',
    async handle(request, { docs }) {
      const guide = docs.guide(request.params.guide ?? '')
      if (guide === null) throw new RequestError('not_found', TEXTS.noGuide)
      return unlessKnown(request, guide)
    },
  }),
  publicRoute({
    method: 'GET',
    path: '/llms.txt',
    access: 'public',
    handle: async (request, { docs }) => unlessKnown(request, docs.llms()),
  }),
]
