/**
 * A request to the dashboard, with its user and team. Reads and verifies its form, and runs the handler of its page if
 * the user has access to it.
 */

import type { Context } from 'koa'
import { type Role, reaches } from '../../../db/accounts/members/roles.ts'
import { noteUse, type Person } from '../../../db/accounts/members/sign-in.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { Body } from '../../http/bodies.ts'
import { BASE } from '../components/base.ts'
import { TEXTS } from '../texts.ts'
import { endedError, endedView, isWorthKeeping, KEPT } from './confirmation.ts'
import type { PageDeps } from './deps.ts'
import { isFormToken, isOurs } from './guard.ts'
import { addressWith } from './list.ts'
import { type Page, type PageAnswer, type PageRequest, type PageTeam, redirect, show } from './page.ts'
import { isFrozen } from './read-only.ts'

export type Visit = {
  ctx: Context
  request: PageRequest
  person: Person | null
  /** The team shown around the page (team.ts), which isn't necessarily the one in its path. */
  team: PageTeam | null
}

/** Size limits of forms, before sign-in and by default. The properties of a contact need the most. */
const MAX_OPEN_FORM_BYTES = 16 * 1024
const MAX_FORM_BYTES = 2 * 1024 * 1024

export const nothingHere = () => new RequestError('not_found', TEXTS.noPage)

const roleError = ({ sees }: PageTeam, needed: Role): RequestError =>
  new RequestError(
    'insufficient_scope',
    reaches(sees, needed) ? TEXTS.suspended : fill(TEXTS.roleNeeded, { needed, role: sees }),
  )

/** Reads from the replica if the page can lag, except while a notice cookie exists, after the user's own change. */
const reading = (
  page: Page,
  { request }: Visit,
  deps: PageDeps,
  read: (deps: PageDeps) => Promise<PageAnswer>,
) =>
  page.fromReplica && page.method === 'GET' && request.cookies('notice') === undefined
    ? deps.replica.read(deps.database, (database) => read({ ...deps, database }))
    : read(deps)

/** Runs the handler of a page if the user has access to it. @throws RequestError. */
export async function answerVisit(page: Page, visit: Visit, deps: PageDeps): Promise<PageAnswer> {
  const { request, person, team } = visit
  if (page.access === 'open') return page.handle({ ...request, person }, deps)
  if (!person) {
    if (isWorthKeeping(request)) return show(endedView(request), 403)
    const search = new URLSearchParams({ return_to: BASE + addressWith(request, {}) })
    return redirect(page.method === 'GET' ? `/login?${search}` : '/login')
  }
  if (page.access === 'person') return page.handle({ ...request, person, around: team }, deps)
  if (page.access === 'operator') {
    if (!person.operator) throw nothingHere()
    return reading(page, visit, deps, (near) => page.handle({ ...request, person }, near))
  }
  if (team?.id !== request.params.team?.toLowerCase() || !team) throw nothingHere()
  const membership = person.memberships.find(({ team_id }) => team_id === team.id)
  if (membership) await noteUse({ tx: deps.database, now: request.now }, person, membership)
  const changes = page.method !== 'GET' || page.isQuestion === true
  const role = changes ? team.role : team.sees
  const frozen = changes && isFrozen(team, person)
  if (frozen || !reaches(role, page.access)) throw roleError(team, page.access)
  return reading(page, visit, deps, (near) => page.handle({ ...request, person, team }, near))
}

/** Returns the size limit of a request's form, which is small without a session. */
const pickLimit = (page: Page, { person }: Visit): number =>
  page.access === 'open' || !person ? MAX_OPEN_FORM_BYTES : (page.takes ?? MAX_FORM_BYTES)

/**
 * Reads a form into the request and checks that it was sent from our page, with this session's token.
 * @returns true if its session has ended and the user signed in again.
 * @throws RequestError. The request then has the form, unless its origin was wrong or it couldn't be read.
 */
export async function readForm(
  page: Page,
  visit: Visit,
  { secrets }: PageDeps,
  body: Body,
): Promise<boolean> {
  const { ctx, request, person } = visit
  const foreign = () => new RequestError('insufficient_scope', TEXTS.foreignForm)
  if (!isOurs(ctx, request.home)) throw foreign()
  const form = await body.form(pickLimit(page, visit)).catch((error) => {
    throw page.access !== 'open' && !person ? endedError(error) : error
  })
  request.form = form
  const isOutlived = person !== null && !isFormToken(secrets, person.session_id, form.get('csrf'))
  // A form of an ended session has to be confirmed, with a token of this session.
  if (isOutlived && !form.has(KEPT)) throw foreign()
  if (isOutlived) form.delete('confirmed')
  for (const value of form.values()) {
    if (value.includes('\0')) throw new RequestError('bad_request', TEXTS.nulInText)
  }
  return isOutlived
}
