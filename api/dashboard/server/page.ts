/**
 * Types of the dashboard's pages: method, path, access and handler. Pages are plain values, like the routes
 * of the API. routes.ts lists them, and dispatch.ts serves them.
 *
 * To add a page:
 * 1. Write it in pages/ with `get(access, path, …)` of builders.ts. The path starts after /dashboard, and its
 *    parameters (`/:id`) are in the request's `params`. The access of `/teams/:team/…` is a role (`viewer`,
 *    `editor`, `owner`), and for other paths `person`, `operator` or `open`. Operators have an owner's access
 *    to every team. Access is checked before the handler runs.
 * 2. A GET returns `show(view)`. A view is a title and a list of sections (section.ts): tiles, facts, tables,
 *    forms, timelines, code, frames. Build them with `buildFacts`, `buildTable`, `buildForm` and the other builders.
 *    Don't write HTML. All text is escaped. A time, a status or a link in a table is a cell (cell.ts).
 * 3. A change is a form (`button`, `buildForm`) and an `action(access, path, …)`, which runs in one transaction as
 *    the user. Use `post` for background jobs and for work that must not run inside a transaction. Token and
 *    origin are checked before the handler runs. Return `redirect(path, notice)`. The next page shows the
 *    notice once. Put a secret that is shown once into the notice's `secret`. If an action is destructive or
 *    affects many rows, add a question with `.confirm(…)`.
 * 4. Throw a RequestError for an error. The nearest GET page above the path of the POST is shown again, with
 *    the message and the submitted values.
 * 5. Rules and queries belong in use cases in db/, which the CLI also uses. A page has no SQL and no rules. A
 *    use case that changes something gets the user as `by` and writes its own audit entry.
 * 6. Read a list with `pageById` (list.ts), which passes a key and a limit to its reader and builds the links
 *    to other pages (`?before=`). `buildList` builds its table and its empty state. Define its filter with
 *    `defineFilter` (filter.ts), and its CSV file with `defineCsv` (csv.ts) and the same reader. With
 *    `fromReplica(access)`, it is read from the replica if there is one, except right after a change by the
 *    same user.
 * 7. Add the page to the list in its file, the list to routes.ts, and a link to nav.ts if it belongs in the
 *    navigation. Add its access to test/support/page-rights.ts. roles.test.ts and looks.test.ts test all
 *    pages.
 */
import type { Readable } from 'node:stream'
import type { Role } from '../../../db/accounts/members/roles.ts'
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import { BASE } from '../components/base.ts'
import type { Loose } from '../components/cell.ts'
import type { View } from '../components/section.ts'
import type { PageDeps } from './deps.ts'

/**
 * A team with the access of the current user. `role` limits changes. In a suspended team it is viewer for
 * everyone except operators, and forms are hidden (read-only.ts). `sees` limits reading, suspended or not.
 * `member` is false for an operator who isn't a member.
 */
export type PageTeam = {
  id: string
  name: string
  role: Role
  sees: Role
  member: boolean
  suspended: boolean
  /** True for a test team, which never delivers anything. */
  test: boolean
  created_at: string
}

/** The parameters of a path: `id` and `team` for `/teams/:team/topics/:id`. */
export type ParamsOf<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsOf<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? Name
    : never

/** @template K the parameters of its path (`ParamsOf`). */
export type PageRequest<K extends string = string> = {
  path: string
  params: Readonly<Record<K, string>>
  query: URLSearchParams
  /** The submitted form. Empty for a GET. */
  form: URLSearchParams
  origin: string
  userAgent: string
  /** True if the script requests the page, false if the browser shows it. */
  byScript: boolean
  /** The service's URL as the browser sees it. It can be forged, so it is only for this response. */
  home: URL
  /** The base URL for links in emails, at providers or to pass on. */
  site: URL
  cookies: (name: CookieName) => string | undefined
  now: Date
}

export type PersonRequest<K extends string = string> = PageRequest<K> & { person: Person }
/** `around` is the team whose navigation the page shows. */
export type OwnRequest<K extends string = string> = PersonRequest<K> & { around: PageTeam | null }
export type TeamRequest<K extends string = string> = PersonRequest<K> & { team: PageTeam }

/** The script sets `zone` to the reader's time zone. */
export type CookieName = 'session' | 'notice' | 'openid' | 'zone'
/** A null `value` deletes the cookie. With null `seconds` it lasts until the browser closes. */
export type Cookie = { name: CookieName; value: string | null; seconds: number | null }

/** A message that the next page shows once. `secret` can be copied and is never shown again. */
export type Notice = { tone: 'good' | 'bad'; text: string; secret?: string }

export type PageAnswer =
  | { kind: 'show'; view: View; status: number }
  | { kind: 'redirect'; to: string; notice: Notice | null; cookies: readonly Cookie[] }
  | { kind: 'raw'; headers: Record<string, string>; body: string | Buffer | Readable }

/** For files, and for the percent-encoded HTML and text of a template. */
export const MAX_LARGE_FORM_BYTES = 8 * 1024 * 1024

export const show = (view: View, status = 200): PageAnswer => ({ kind: 'show', view, status })

/** Redirects to another page, which shows the notice. @param path the path after /dashboard. */
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

/** Returns a file or a preview. Its headers override the dashboard's. */
export const raw = (headers: Record<string, string>, body: string | Buffer | Readable): PageAnswer => ({
  kind: 'raw',
  headers,
  body,
})

/**
 * A question to confirm before a form is processed. `answer` is the label of the button that confirms, and
 * `keep` of the link back (default `Go back`). `fields` are submitted in addition to the form.
 */
export type Question = Loose<{
  question: string
  answer: string
  warning?: string
  keep?: string
  tone?: 'danger'
  fields?: Readonly<Record<string, string>>
}>

/** A question, another response instead, or null to process the form without one. */
type Confirmation = Question | PageAnswer | null

type Handler<R> = {
  method: 'GET' | 'POST'
  path: string
  /** Returns the question to confirm before the form is processed (confirmation.ts). */
  asks?: ((request: R, deps: PageDeps) => Confirmation | Promise<Confirmation>) | undefined
  /** Set for the page of a question. It needs the access of its form. */
  isQuestion?: true
  /** Set for a read-only list that can lag slightly (DECISIONS: Reads from a replica). */
  fromReplica?: true
  /** Size limit of its form in bytes, if it isn't the default. */
  takes?: number
  handle: (request: R, deps: PageDeps) => Promise<PageAnswer>
}

type OpenPage = Handler<PageRequest & { person: Person | null }> & { access: 'open' }
type OwnPage = Handler<OwnRequest> & { access: 'person' }
type PersonPage = Handler<PersonRequest> & { access: 'person' | 'operator' }
export type TeamPage = Handler<TeamRequest> & { access: Role }
export type Page = OpenPage | OwnPage | PersonPage | TeamPage

export type PageOf<A extends Page['access']> = A extends Role
  ? TeamPage
  : A extends 'operator'
    ? PersonPage
    : A extends 'person'
      ? OwnPage
      : OpenPage
export type RequestOf<A extends Page['access'], K extends string> = Parameters<PageOf<A>['handle']>[0] &
  PageRequest<K>

/** Returns the path of a page of a team, after /dashboard. */
export const teamPath = (team: { id: string }, ...rest: string[]): string =>
  ['/teams', team.id, ...rest.map(encodeURIComponent)].join('/')

/** Says that owners can change something, after a sentence for members who can't. */
export const forOthers = ({ sees }: Pick<PageTeam, 'sees'>, what: string): string =>
  sees === 'owner' ? '' : ` Owners of the team can ${what}.`
