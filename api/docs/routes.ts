/**
 * GET /docs, /docs/GUIDE.md, /llms.txt, /openapi.json and /postman.json describe the API for readers and for
 * programs. GET / links to them. All are public, contain no team's data, and are rendered once a day.
 */
import { RequestError } from '../../db/errors.ts'
import type { Answer } from '../http/errors.ts'
import { etagOf, isKnown } from '../http/etag.ts'
import { type PublicRoute, publicRoutes, type Request } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import type { Described } from './about.ts'
import { openApi } from './openapi.ts'
import type { Shown } from './shown.ts'

type RenderedDoc = { body: string; headers: Record<string, string> }

/** The descriptions in the memory of a process. */
export type Docs = ReturnType<typeof createDocs>

/** `dashboard` is null if it is disabled. */
export type DocsDeps = { docs: Docs; dashboard: object | null }

const CACHE_MAX_AGE_S = 300

/** Renders once a day, because examples contain future times. */
function daily(clock: () => Date, render: (now: Date) => Promise<RenderedDoc>): () => Promise<RenderedDoc> {
  let rendered: (RenderedDoc & { day: string }) | null = null
  return async () => {
    const now = clock()
    const day = now.toISOString().slice(0, 10)
    if (rendered?.day === day) return rendered
    const { body, headers } = await render(now)
    const caching = { ETag: etagOf(body), 'Cache-Control': `public, max-age=${CACHE_MAX_AGE_S}` }
    rendered = { day, body, headers: { ...caching, 'X-Content-Type-Options': 'nosniff', ...headers } }
    return rendered
  }
}

/** `publicUrl` and `port` are the address of the service. `domain` is the sender's domain in examples. */
type ServiceAddress = { publicUrl: string | null; port: number; domain: string; clock?: () => Date }

/** Creates the descriptions. Most modules load with the first request, which saves memory in most processes. */
export function createDocs(
  routes: readonly Described[],
  { publicUrl, port, domain, clock = () => new Date() }: ServiceAddress,
) {
  const home = publicUrl?.replace(/\/$/, '') ?? `http://localhost:${port}`
  const rendered = (type: string, render: (shown: Shown) => Promise<string>) =>
    daily(clock, async (now) => ({
      body: await render({ home, domain, now }),
      headers: { 'Content-Type': `${type}; charset=utf-8`, 'Access-Control-Allow-Origin': '*' },
    }))
  const guides = new Map<string, () => Promise<RenderedDoc>>()
  return {
    openapi: rendered('application/json', async (shown) => JSON.stringify(openApi(routes, publicUrl, shown))),
    postman: rendered('application/json', async (shown) => {
      const { postmanCollection } = await import('./postman.ts')
      return JSON.stringify(postmanCollection(routes, shown))
    }),
    page: daily(clock, async (now) => {
      const { documentation, policy } = await import('./page.ts')
      return {
        body: documentation(routes, { home, domain, now }),
        headers: {
          'Content-Type': 'text/html; charset=utf-8',
          'Content-Security-Policy': policy(),
          'Referrer-Policy': 'no-referrer',
        },
      }
    }),
    llms: rendered('text/plain', async (shown) => (await import('./markdown.ts')).llmsText(shown)),
    /** Returns a guide as Markdown, or null for an unknown ID. */
    async guide(id: string) {
      const { findGuide, guideMarkdown } = await import('./markdown.ts')
      const guide = findGuide(id)
      if (!guide) return null
      const own = guides.get(id) ?? rendered('text/markdown', async (shown) => guideMarkdown(guide, shown))
      guides.set(id, own)
      return own()
    },
  }
}

/** Returns the rendered text, or 304 if the client has it. */
function unlessKnown({ headers: asked }: Request, { body, headers }: RenderedDoc): Answer {
  const known = headers.ETag !== undefined && isKnown(asked, headers.ETag)
  return known ? { status: 304, headers } : { status: 200, body, headers }
}

const PLACES = { api: '/v1', docs: '/docs', openapi: '/openapi.json', dashboard: '/dashboard' }

/** Former IDs of guides. */
const RENAMED_GUIDES = new Map([
  ['what-became-of-it', 'delivery-status'],
  ['when', 'scheduling'],
])

const publicRoute = publicRoutes<DocsDeps>()

const docRoute = (path: string, name: Exclude<keyof Docs, 'guide'>): PublicRoute<DocsDeps> =>
  publicRoute({
    method: 'GET',
    path,
    handle: async (request, { docs }) => unlessKnown(request, await docs[name]()),
  })

export const docsRoutes: readonly PublicRoute<DocsDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/',
    // Browsers accept text/html. Programs accept any type.
    async handle({ headers }, { dashboard }) {
      const isBrowser = headers.accept?.includes('text/html') ?? false
      const { dashboard: pages, ...places } = PLACES
      if (isBrowser) {
        const type = { 'Content-Type': 'text/html; charset=utf-8' }
        const body = '<a href="/docs">/docs</a>\n'
        return { status: 302, body, headers: { ...type, Location: PLACES.docs, Vary: 'Accept' } }
      }
      const body = { name: 'Heliograph', ...places, ...(dashboard ? { dashboard: pages } : {}) }
      return { status: 200, body, headers: { Vary: 'Accept' } }
    },
  }),
  docRoute('/openapi.json', 'openapi'),
  docRoute('/postman.json', 'postman'),
  docRoute('/docs', 'page'),
  publicRoute({
    method: 'GET',
    path: '/docs/:guide.md',
    async handle(request, { docs }) {
      const id = request.params.guide ?? ''
      const renamed = RENAMED_GUIDES.get(id)
      if (renamed) {
        const Location = `/docs/${renamed}.md`
        return {
          status: 308,
          body: `${Location}\n`,
          headers: { 'Content-Type': 'text/plain; charset=utf-8', Location },
        }
      }
      const guide = await docs.guide(id)
      if (guide === null) throw new RequestError('not_found', TEXTS.noGuide)
      return unlessKnown(request, guide)
    },
  }),
  docRoute('/llms.txt', 'llms'),
]
