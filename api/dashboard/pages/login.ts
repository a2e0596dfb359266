/**
 * Sign-in with a one-time link (from the CLI, an owner or by email) or an OpenID provider, and sign-out.
 * Opening a link only shows a button that signs in, because scanners follow links. Each sign-in creates a new
 * session. The response to a request for a link doesn't reveal if the address is known.
 */

import {
  type IdentityClaims,
  LONGEST_SESSION_MS,
  ownerOfLink,
  signInByClaims,
  signInByLink,
  signOut,
} from '../../../db/accounts/members/sign-in.ts'
import { RequestError } from '../../../db/errors.ts'
import { BASE } from '../components/base.ts'
import type { Section, View } from '../components/section.ts'
import { buildForm, compact, field, get, hidden, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { localPath, seal, unseal } from '../server/guard.ts'
import type { Flow } from '../server/openid.ts'
import { type Cookie, type PageRequest, redirect, show } from '../server/page.ts'
import { describeTeams, linkPath, mailLink } from './mail-link.ts'

const FLOW_SECONDS = 600

const sessionCookie = (value: string | null): Cookie => ({
  name: 'session',
  value,
  seconds: value ? LONGEST_SESSION_MS / 1_000 : 0,
})

const CLI: Section = {
  kind: 'text',
  title: 'With a link from the command line',
  paragraphs: [
    'The operator of this service creates a one-time link with: npm run -s admin -- login YOU@EXAMPLE.COM',
    'An owner of your team can also invite you on the Members page.',
  ],
}

const canMail = ({ from, openid }: PageDeps): boolean => from !== null && !openid?.only

/** Builds the form that requests a link by email, unless these are disabled. */
const mailForm = ({ query }: PageRequest, deps: PageDeps): Section | false =>
  canMail(deps) &&
  buildForm('/login', 'Send me a link', {
    title: 'With a link by email',
    fields: [
      field('email', 'Your email address', { type: 'email', required: true, autofocus: true }),
      hidden('return_to', localPath(query.get('return_to'))),
    ],
  })

function loginView(request: PageRequest, deps: PageDeps): View {
  const search = new URLSearchParams({ return_to: BASE + localPath(request.query.get('return_to')) })
  const links = [{ href: `/openid?${search}`, label: 'Sign in with your account' }]
  const sections = compact<Section>([deps.openid && { kind: 'actions', links }, mailForm(request, deps), CLI])
  return { title: 'Sign in', narrow: true, sections }
}

const login = get('open', '/login', async (request, deps) =>
  request.person ? redirect('') : show(loginView(request, deps)),
)

const askForLink = post('open', '/login', async (request, deps) => {
  if (canMail(deps)) await mailLink(request, deps, request.form.get('email') ?? '')
  return show({
    title: 'Check your inbox',
    narrow: true,
    lead: 'If this address has access, a link is on its way. It works once, within 15 minutes.',
    sections: [],
  })
})

/** Builds the page for a link that no longer works, with a form for a new one. */
const usedLinkView = (request: PageRequest, deps: PageDeps): View => ({
  title: 'This link has been used or has expired',
  narrow: true,
  lead: 'A link works once, and only for a limited time. Request a new one, or contact a team owner.',
  sections: compact<Section>([
    mailForm(request, deps),
    { kind: 'actions', links: [{ href: '/login', label: 'Go to the sign-in page' }] },
  ]),
})

/** Resolves to null for a link that no longer works. */
const unlessUsed = <T>(found: Promise<T>): Promise<T | null> =>
  found.catch((error: unknown) => {
    if (error instanceof RequestError && error.code === 'not_found') return null
    throw error
  })

const link = get('open', '/login/:secret', async (request, deps) => {
  const { params, query, now } = request
  const secret = params.secret
  const owner = await unlessUsed(ownerOfLink({ tx: deps.database, now }, secret))
  if (!owner) return show(usedLinkView(request, deps), 404)
  const { email, places } = owner
  return show({
    title: 'Sign in to Heliograph',
    narrow: true,
    lead: `You are about to sign in as ${email}${describeTeams(places)}.`,
    sections: [buildForm(linkPath(secret, localPath(query.get('return_to'))), 'Sign in')],
  })
})

const useLink = post('open', '/login/:secret', async (request, deps) => {
  const { params, query, now, userAgent, person } = request
  const signedIn = await unlessUsed(
    deps.database.transaction(async (tx) => {
      if (person) await signOut(tx, person)
      return signInByLink({ tx, now }, params.secret, userAgent)
    }),
  )
  if (!signedIn) return show(usedLinkView(request, deps), 404)
  return redirect(localPath(query.get('return_to')), null, [sessionCookie(signedIn.secret)])
})

const beginOpenId = get('open', '/openid', async ({ site, query }, { openid, secrets, log }) => {
  if (!openid) return redirect('/login')
  const begun = await openid.begin(site, localPath(query.get('return_to'))).catch((error: unknown) => {
    log.warn({ err: error }, 'OpenID provider unavailable')
    return null
  })
  if (!begun) return show(refusedView('Your provider isn’t responding. Try again later.'), 503)
  const { url, flow } = begun
  const sealed = seal(secrets, 'openid-cookie', flow)
  const cookies: Cookie[] = [{ name: 'openid', value: sealed, seconds: FLOW_SECONDS }]
  return { kind: 'redirect', to: url, notice: null, cookies }
})

const refusedView = (words: string): View => ({
  title: 'Sign-in failed',
  narrow: true,
  lead: words,
  sections: [{ kind: 'actions', links: [{ href: '/login', label: 'Try again' }] }],
})

function notHere({ email, email_verified }: IdentityClaims): string {
  const who = email === '' ? 'your address' : email
  if (email_verified === null)
    return `Your provider doesn’t report whether ${who} is verified. Ask its administrator to send the claim email_verified.`
  if (!email_verified)
    return `Your provider reports that ${who} isn’t verified. Verify it there, then try again.`
  return `No member signs in with ${who}. Ask an owner of your team, or the operator of this service, to add you.`
}

const finishOpenId = get(
  'open',
  '/openid/callback',
  async ({ site, query, cookies, now, userAgent }, { openid, secrets, database, log }) => {
    const flow = unseal<Flow>(secrets, 'openid-cookie', cookies('openid'))
    if (!openid || !flow)
      return show(refusedView('The sign-in took too long, or was started in another browser.'), 400)
    const came = new URL(`${BASE}/openid/callback?${query}`, site)
    const claims = await openid.finish(came, flow).catch((error: unknown) => {
      log.warn({ err: error }, 'OpenID sign-in failed')
      return null
    })
    if (!claims) return show(refusedView('Your provider sent an unexpected response. Try again.'), 400)
    const secret = await database
      .transaction((tx) => signInByClaims({ tx, now }, claims, userAgent))
      .catch((error: unknown) => {
        if (error instanceof RequestError) return null
        throw error
      })
    if (secret === null) return show(refusedView(notHere(claims)), 403)
    const gone: Cookie = { name: 'openid', value: null, seconds: 0 }
    return redirect(flow.return_to, null, [sessionCookie(secret), gone])
  },
)

const leave = post('person', '/sign-out', async ({ person }, { database }) => {
  await signOut(database, person)
  return redirect('/login', 'You are signed out.', [sessionCookie(null)])
})

export const loginPages = [login, askForLink, link, useLink, beginOpenId, finishOpenId, leave]
