/**
 * What a page of the dashboard is: method, path, who may open it, and a handler from request to answer. Pages are plain
 * values, as the API's routes are: routes.ts lists them, dispatch.ts serves them, tests walk over them.
 *
 * To add a page:
 * 1. Write it in a file under pages/ by made.ts: `get(access, path, …)`; the path begins after /dashboard, and what it
 *    leaves open (`/:id`) is the request's `params`.
 *    `/teams/:team/…` paths take a role (`viewer`, `editor`, `owner`), others `person`, `operator` or `open`. An
 *    operator may do what an owner may, in every team. Others are refused before the handler runs.
 * 2. A GET answers `show(view)`. A view is a title and a list of sections (section.ts): tiles, facts, tables, forms,
 *    timelines, code, frames, by `factsOf`, `tableOf`, `formOf` and what else is beside them. A handler says what there
 *    is; how it looks is the views' and the stylesheet's business. Write no HTML. All text is escaped; a time, a status
 *    or a link in a table is a cell (cell.ts).
 * 3. What changes something is a POST with a form (`press`, `formOf`), and an `act(access, path, …)`: one transaction,
 *    as the person. `post` is for background jobs, and for what no transaction must be open around. Token and origin
 *    are checked before the handler runs. It answers `redirect(path, notice)`: the notice is shown once on the page
 *    that follows. A secret to show once is a notice's `secret`.
 *    What destroys or changes much declares what is asked before, as the last argument of `act` or `post`.
 * 4. Throw a RequestError when it cannot be done: the nearest GET page above the POST's path is shown again with the
 *    refusal's words, and with what was typed in the form that was sent.
 * 5. Rules and queries are use cases under db/, the CLI's own: a page has no SQL and decides nothing. What changes
 *    something is given the person as `by`, and writes its own line in the audit trail.
 * 6. A list is `pageById` (list.ts): it hands its reader a key and a number, and makes the links around (`?before=`).
 *    `listOf` is its table, label by label as `tableOf`, with what is said when there is nothing. Its filter is one
 *    value, `defineFilter` (filter.ts): form, reader and chips. Its file is `csvOf` (csv.ts), by the same reader.
 *    With `fromReplica(access)` it is read from a replica where there is one, unless it follows a change of one's own.
 * 7. Add the value to its file's list, the list to routes.ts, and a link to nav.ts if it is a place of its own. Write
 *    down whom it is for in test/support/page-rights.ts; other tests walk over all pages by themselves (roles.test.ts,
 *    looks.test.ts).
 */
import type { Readable } from 'node:stream'
import type { Role } from '../../../db/accounts/members/roles.ts'
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import { BASE } from '../components/base.ts'
import type { Loose } from '../components/cell.ts'
import type { View } from '../components/section.ts'
import type { PageDeps } from './deps.ts'

/**
 * A team as the person who asks may use it. `role`: what they may change; in a suspended team its people have that of a
 * viewer, and are shown no form that changes something of it (frozen.ts). `sees`: what they may look at, suspended or
 * not. `member`: false for an operator who is none.
 */
export type PageTeam = {
  id: string
  name: string
  role: Role
  sees: Role
  member: boolean
  suspended: boolean
  /** Whether nothing of it is delivered. */
  test: boolean
  created_at: string
}

/** What a path leaves open: `id` and `team` for `/teams/:team/topics/:id`. */
export type ParamsOf<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never

/** @template K the parts of its path that are known by name (`ParamsOf`); of any other there may be none. */
export type PageRequest<K extends string = string> = {
  path: string
  params: Readonly<Record<K, string>>
  query: URLSearchParams
  /** What a form sent; empty for a GET. */
  form: URLSearchParams
  /** The address of the browser, as far as it is known. */
  origin: string
  userAgent: string
  /** The service's own address, as the browser sees it: for this answer alone, since the browser may say anything. */
  home: URL
  /** Where links that leave this answer lead: mailed, handed on, or followed by a provider. */
  site: URL
  cookies: (name: CookieName) => string | undefined
  now: Date
}

export type PersonRequest<K extends string = string> = PageRequest<K> & { person: Person }
/** @param around the team whose frame a page of the person's own stands in. */
export type OwnRequest<K extends string = string> = PersonRequest<K> & { around: PageTeam | null }
export type TeamRequest<K extends string = string> = PersonRequest<K> & { team: PageTeam }

/** `zone`: the reader's, which the browser's script leaves. */
export type CookieName = 'session' | 'notice' | 'openid' | 'zone'
/** `value` null takes the cookie away; `seconds` null keeps it as long as the browser runs. */
export type Cookie = { name: CookieName; value: string | null; seconds: number | null }

/** What the next page says once. `secret` can be copied and is never shown again. */
export type Notice = { tone: 'good' | 'bad'; text: string; secret?: string }

export type PageAnswer =
  | { kind: 'show'; view: View; status: number }
  | { kind: 'redirect'; to: string; notice: Notice | null; cookies: readonly Cookie[] }
  | { kind: 'raw'; headers: Record<string, string>; body: string | Buffer | Readable }

/** For a file, and for a template's html and text, percent-encoded. */
export const MAX_LARGE_FORM_BYTES = 8 * 1024 * 1024

export const show = (view: View, status = 200): PageAnswer => ({ kind: 'show', view, status })

/** Redirects to another page, with a few words of what was done. @param path after /dashboard. */
export const redirect = (
  path: string,
  notice: string | Notice | null = null,
  cookies: readonly Cookie[] = [],
): PageAnswer => ({
  kind: 'redirect',
  to: BASE + path,
  notice: typeof notice === 'string' ? { tone: 'good', text: notice } : notice,
  cookies,
})

/** Redirects to a page of another site. */
export const redirectAway = (url: string, cookies: readonly Cookie[]): PageAnswer => ({
  kind: 'redirect',
  to: url,
  notice: null,
  cookies,
})

/** Anything that is no page: a file, a preview. Its headers win over ours. */
export const raw = (headers: Record<string, string>, body: string | Buffer | Readable): PageAnswer => ({
  kind: 'raw',
  headers,
  body,
})

/**
 * What someone is asked before a form is carried out.
 * @param answer the button that carries it out. @param keep the way back, if `Go back` is not plain enough.
 * @param fields what the answer sends in addition to the form.
 */
export type Question = Loose<{
  question: string
  answer: string
  warning?: string
  keep?: string
  tone?: 'danger'
  fields?: Readonly<Record<string, string>>
}>

/** A question, another page instead, or null for a form that is carried out without one. */
type Asked = Question | PageAnswer | null

type Serves<R> = {
  method: 'GET' | 'POST'
  path: string
  /** What is asked before its form is carried out, on a page of its own (confirmation.ts). */
  asks?: ((request: R, deps: PageDeps) => Asked | Promise<Asked>) | undefined
  /** Set for a page that asks: it is for those who may carry out what it asks about. */
  isQuestion?: true
  /** A list that only reads, and may be a moment behind (DECISIONS: Reads from a replica). */
  fromReplica?: true
  /** How many bytes its form may send, where that is more than most forms do. */
  takes?: number
  handle: (request: R, deps: PageDeps) => Promise<PageAnswer>
}

type OpenPage = Serves<PageRequest & { person: Person | null }> & { access: 'open' }
type OwnPage = Serves<OwnRequest> & { access: 'person' }
type PersonPage = Serves<PersonRequest> & { access: 'person' | 'operator' }
export type TeamPage = Serves<TeamRequest> & { access: Role }
export type Page = OpenPage | OwnPage | PersonPage | TeamPage

/** What a page with this access is, and what it is asked with. */
export type PageOf<A extends Page['access']> = A extends Role
  ? TeamPage
  : A extends 'operator'
    ? PersonPage
    : A extends 'person'
      ? OwnPage
      : OpenPage
export type RequestOf<A extends Page['access'], K extends string> = Parameters<PageOf<A>['handle']>[0] &
  PageRequest<K>

/** The path of a team's page, after /dashboard. */
export const teamPath = (team: { id: string }, ...rest: string[]): string =>
  ['/teams', team.id, ...rest.map(encodeURIComponent)].join('/')
