/**
 * Simulates a user with a browser on the dashboard: keeps cookies, and submits forms from pages. It sends
 * nothing that a browser wouldn't. Redirects are returned, not followed.
 */
import type { Test } from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { linkFor } from '../../db/accounts/members/members.ts'
import type { Role } from '../../db/accounts/members/roles.ts'
import { canary } from './canary.ts'
import { formTo } from './forms.ts'
import type { Service } from './service.ts'

export type Seen = { status: number; headers: Headers; html: string; location: string | null }

export type Visitor = {
  email: string
  /** Requests a page. @param path after /dashboard. */
  get(path: string, headers?: Record<string, string>): Promise<Seen>
  /** Submits a form as confirmed. Adds the token of the user's pages unless the form has one. */
  post(
    path: string,
    form?: Record<string, string | string[]>,
    headers?: Record<string, string>,
  ): Promise<Seen>
  /**
   * Submits a form, and opens its confirmation page. @returns the form's response if it needs no
   * confirmation.
   */
  ask(path: string, form?: Record<string, string | string[]>): Promise<Seen>
  /** Submits a page's form for a path with these changes. Confirms it if needed. */
  press(page: string, path: string, changes?: Record<string, string | string[]>): Promise<Seen>
  /** Sends a form with a file in its field `file`. */
  upload(path: string, name: string, text: string | Uint8Array<ArrayBuffer>): Promise<Seen>
  cookies: Map<string, string>
}

/** Returns a browser without a session. */
export function visitor({ base }: Pick<Service, 'base'>, email = 'nobody@example.com'): Visitor {
  const cookies = new Map<string, string>()
  const ask = async (path: string, init: RequestInit): Promise<Seen> => {
    const form = init.body instanceof URLSearchParams ? Object.fromEntries(init.body) : {}
    canary.contents(form)
    const response = await fetch(`${base}/dashboard${path}`, {
      ...init,
      redirect: 'manual',
      headers: {
        ...init.headers,
        Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else {
        cookies.set(name, value)
        canary.secrets(value)
      }
    }
    const location = response.headers.get('location')
    return {
      status: response.status,
      headers: response.headers,
      html: await response.text(),
      location: location?.replace(/^\/dashboard/, '') ?? null,
    }
  }
  const known = { session: '', token: '' }
  /** The token of the session's forms. Each page has the same one, so it is read once. */
  const token = async (): Promise<string> => {
    const session = cookies.get('heliograph') ?? ''
    if (session !== known.session || session === '')
      Object.assign(known, {
        session,
        token: /name="csrf" value="([^"]+)"/.exec((await ask('/account', {})).html)?.[1] ?? '',
      })
    return known.token
  }
  const post: Visitor['post'] = async (path, form = {}, headers = { 'Sec-Fetch-Site': 'same-origin' }) => {
    const body = new URLSearchParams()
    for (const [name, values] of Object.entries(form))
      for (const value of [values].flat()) body.append(name, value)
    if (!body.has('csrf')) body.set('csrf', await token())
    if (!body.has('confirmed')) body.set('confirmed', 'yes')
    return ask(path, { method: 'POST', body, headers })
  }
  return {
    email,
    cookies,
    get: (path, headers = {}) => ask(path, { headers }),
    post,
    async ask(path, form = {}) {
      const sent = await post(path, { ...form, confirmed: '' })
      return sent.location?.includes('/confirm') ? ask(sent.location, {}) : sent
    },
    async press(page, path, changes = {}) {
      const fields = formTo((await ask(page, {})).html, path)
      return post(path, { ...fields, ...changes })
    },
    async upload(path, name, text) {
      const body = new FormData()
      body.append('file', new Blob([text], { type: 'text/csv' }), name)
      body.append('csrf', await token())
      return ask(path, { method: 'POST', body, headers: { 'Sec-Fetch-Site': 'same-origin' } })
    },
  }
}

type Rights = { team?: string; role?: Role; operator?: boolean; email?: string }

/** Signs in a user with these rights, with a link as in the CLI. */
export async function signedIn(service: Service, rights: Rights): Promise<Visitor> {
  const { team = null, role = null, operator = false } = rights
  const email = rights.email ?? `${role ?? 'someone'}-${uuidv7().slice(-8)}@example.com`
  const now = service.deps.clock()
  const { secret } = await service.database.transaction((tx) =>
    linkFor({ tx, now, actor: 'cli' }, { email, team, role, operator }),
  )
  canary.secrets(secret)
  const person = visitor(service, email)
  const { status } = await person.post(`/login/${secret}`, { csrf: '' })
  if (status !== 303) throw new Error(`could not sign in: ${status}`)
  return person
}

const unescaped = (html: string): string =>
  html
    .replace(/&#x3D;/g, '=')
    .replace(/&#x27;/g, "'")
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')

/** Returns the visible text of a page, without tags. */
export const textOf = (html: string): string =>
  unescaped(html.replace(/<wbr>|<(span|label) class="vh"[^>]*>[^<]*<\/\1>/g, '').replace(/<[^>]+>/g, ' '))
    .replace(/\s+/g, ' ')
    .trim()

/** Returns the initial fields of each form of a page for this path, without the token. */
export const formsTo = ({ html }: Pick<Seen, 'html'>, path: string): Record<string, string>[] =>
  (html.match(/<form[\s\S]*?<\/form>/g) ?? [])
    .filter((form) => [`"`, '?'].some((end) => form.includes(`action="/dashboard${path}${end}`)))
    .map((form) =>
      Object.fromEntries(
        [...form.matchAll(/<input type="hidden"[^>]*? name="([^"]+)" value="([^"]*)"/g)]
          .map(([, name = '', value = '']) => [name, unescaped(value)] as const)
          .filter(([name]) => name !== 'csrf'),
      ),
    )

/** Returns the page that a form redirects to. */
export async function after(person: Visitor, sent: Seen): Promise<Seen> {
  if (sent.status !== 303) throw new Error(`not sent on: ${sent.status} ${textOf(sent.html)}`)
  return person.get(sent.location ?? '')
}

/** Returns the customer's HTML from a preview, without our addition at its end. */
export const framedIn = ({ html }: Pick<Seen, 'html'>): string =>
  html.replace(/\n<base target="_blank">.*$/, '')

/** Returns the main buttons next to a page's title. */
export function mainActs({ html }: Pick<Seen, 'html'>): string[] {
  const [, head = ''] = /<div class="acts">([\s\S]*?)\n {4}<\/div>/.exec(html) ?? []
  const beside = head.replace(/<div class="form">[\s\S]*?<\/details>/g, '')
  const looks = /<(?:button class=""|a class="button"|summary class="button ")[^>]*>([^<]*)/g
  return [...beside.matchAll(looks)].map(([, label = '']) => label)
}

/** Fails unless the page shows this text. */
export const shows = (t: Test, { html }: Pick<Seen, 'html'>, words: string | RegExp): boolean =>
  t.match(textOf(html), words)
