/** Attacks on the dashboard through a browser. */
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { createApp } from '../../../api/app.ts'
import { PAGES } from '../../../api/dashboard/routes.ts'
import { createBodies } from '../../../api/http/bodies.ts'
import { BODY_BUDGET, LARGE_BODIES_SHARE } from '../../../api/http/body-budget.ts'
import { createParser } from '../../../api/http/parser.ts'
import { PARSER_THREAD } from '../../../api/v1/routes.ts'
import { linkFor } from '../../../db/accounts/members/members.ts'
import { shows, signedIn, type Visitor, visitor } from '../../support/dashboard.ts'
import { byCli, listen, startService, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { service, team } = await world(t)
const owner = await signedIn(service, { team: team.id, role: 'owner' })

/** The announced length of a form that is never completed, in bytes. */
const ENDLESS_FORM = 400_000

/** Starts to send a form that is never completed. */
function beginForm(t: Test, base: string, person: Visitor | undefined): ClientRequest {
  const headers = {
    Cookie: [...(person?.cookies ?? [])].map(([name, value]) => `${name}=${value}`).join('; '),
    'Sec-Fetch-Site': 'same-origin',
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': ENDLESS_FORM,
  }
  const sent = request(`${base}/dashboard/teams/${team.id}/topics`, { method: 'POST', headers, agent: false })
  sent.on('error', () => {})
  t.teardown(() => sent.destroy())
  sent.write(Buffer.alloc(200_000))
  return sent
}

t.test("rejects forms of other sites and without the session's token", async (t) => {
  const post = (headers: Record<string, string>, form = {}) =>
    owner.post('/account/end-others', form, headers)
  t.equal((await post({ 'Sec-Fetch-Site': 'same-origin' })).status, 303)
  t.equal((await post({ Origin: service.base })).status, 303, 'an older browser')
  t.equal((await post({ 'Sec-Fetch-Site': 'cross-site' })).status, 403)
  t.equal((await post({ 'Sec-Fetch-Site': 'same-site' })).status, 403)
  t.equal((await post({ 'Sec-Fetch-Site': 'cross-site', Origin: service.base })).status, 403)
  t.equal((await post({ Origin: 'https://evil.test' })).status, 403)
  t.equal((await post({})).status, 403, 'neither is disclosed')
  const other = await signedIn(service, { team: team.id, role: 'owner' })
  const token = /name="csrf" value="([^"]+)"/.exec((await other.get('/account')).html)?.[1] ?? ''
  for (const csrf of [token, token.slice(0, 11), 'x', ''])
    t.equal((await post({ 'Sec-Fetch-Site': 'same-origin' }, { csrf })).status, 403, JSON.stringify(csrf))
})

t.test('a link cannot be used from another site', async (t) => {
  const wish = { email: 'ana@example.com', team: team.id, role: 'viewer', operator: false } as const
  const { secret } = await service.database.transaction((tx) => linkFor(byCli(tx), wish))
  const ana = visitor(service)
  const forged = await ana.post(`/login/${secret}`, { csrf: '' }, { 'Sec-Fetch-Site': 'cross-site' })
  t.equal(forged.status, 403)
  t.equal((await ana.post(`/login/${secret}`, { csrf: '' })).status, 303, 'it is still good')
})

t.test('every response has the security headers', async (t) => {
  for (const path of ['/login', '', '/account', `/teams/${team.id}`, '/nowhere', '/assets/x/dashboard.js']) {
    const { headers } = await owner.get(path)
    const policy = headers.get('content-security-policy') ?? ''
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ]) {
      t.ok(policy.includes(part), `${path}: ${part}`)
    }
    t.notMatch(policy, /unsafe/)
    t.match(headers.get('x-content-type-options'), 'nosniff')
    t.match(headers.get('referrer-policy'), 'no-referrer')
    t.match(headers.get('cache-control'), 'no-store')
  }
})

t.test('sign-in only returns to requested pages of this site', async (t) => {
  const stranger = visitor(service)
  const sent = await stranger.get(`/teams/${team.id}`)
  t.match(sent, { status: 303, location: `/login?return_to=%2Fdashboard%2Fteams%2F${team.id}` })
  const { localPath } = await import('../../../api/dashboard/server/guard.ts')
  t.equal(localPath('/dashboard/teams?a=1'), '/teams?a=1')
  for (const evil of [
    'https://evil.test/dashboard',
    '//evil.test/dashboard',
    '/\\evil.test/dashboard',
    '/dashboard/../../evil',
    '/dashboardx',
    'javascript:alert(1)',
    '/v1/plans',
    '',
    null,
  ]) {
    t.equal(localPath(evil), '', String(evil))
  }
})

t.test('malformed paths return 404', async (t) => {
  for (const path of ['/teams/x', `/teams/${team.id}%00`, '/teams/%E0%A4%A', '/assets/../page.ts'])
    t.equal((await owner.get(path)).status, 404, path)
})

t.test('a wrong method returns 405 with Allow', async (t) => {
  const posted = await owner.post(`/teams/${team.id}`)
  t.strictSame([posted.status, posted.headers.get('allow')], [405, 'HEAD, GET'])
  const asked = await owner.get('/sign-out')
  t.strictSame([asked.status, asked.headers.get('allow')], [405, 'POST'])
})

t.test('cookies are Secure except with plain HTTP on loopback', async (t) => {
  const cookieFor = async (host: string): Promise<string> => {
    const wish = { email: 'ana@example.com', team: team.id, role: 'viewer', operator: false } as const
    const now = new Date()
    const { secret } = await service.database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
    const headers = { Host: host, 'Sec-Fetch-Site': 'same-origin' }
    return new Promise((resolve, reject) => {
      const asked = request(
        `${service.base}/dashboard/login/${secret}`,
        { method: 'POST', headers },
        (answer) => {
          answer.resume()
          resolve(String(answer.headers['set-cookie']))
        },
      )
      asked.once('error', reject)
      asked.end()
    })
  }
  t.match(await cookieFor('localhost:3000'), /^heliograph=/)
  t.match(await cookieFor('mail.example.com'), /^__Host-heliograph=.*; Secure/)
  t.match(await cookieFor('localhost.evil.test'), /^__Host-heliograph=.*; Secure/)
})

/** Sends a form without a session. */
async function sendOpen(path: string, body: string | FormData, headers: Record<string, string> = {}) {
  const type = typeof body === 'string' ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {}
  const init = { method: 'POST', body, headers: { 'Sec-Fetch-Site': 'same-origin', ...type, ...headers } }
  const answer = await fetch(`${service.base}/dashboard${path}`, init)
  return { status: answer.status, html: await answer.text() }
}

t.test('limits forms to 2,000 fields, and to 16 KiB without a session', async (t) => {
  const large = await sendOpen('/login', `email=ana%40example.com&a=${'x'.repeat(16 * 1024)}`)
  t.equal(large.status, 413)
  shows(
    t,
    large,
    'Too large · Heliograph Skip to content Heliograph Too large The request body must be at most 16 KiB. Overview',
  )
  const files = new FormData()
  for (let count = 0; count < 200; count += 1) files.append('file', new Blob([]), '')
  t.equal((await sendOpen('/login', files)).status, 413)
  const many = await sendOpen('/login', 'a&'.repeat(2_000))
  t.equal(many.status, 400)
  shows(
    t,
    many,
    'Something went wrong · Heliograph Skip to content Heliograph Something went wrong The form must have at most 2,000 fields. Overview',
  )
  t.equal((await sendOpen('/login', 'a=b', { 'Content-Type': 'text/plain' })).status, 415)
  const kept = await sendOpen(`/teams/${team.id}/topics`, `name=${'x'.repeat(16 * 1024)}`, {
    Cookie: 'heliograph=gone',
  })
  t.equal(kept.status, 413)
  shows(
    t,
    kept,
    'Too large · Heliograph Skip to content Heliograph Too large Your session has ended, and this form is too large to keep. Sign in in another tab, go back to the form and submit it again. Overview',
  )
  const fields = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`a${at}`, '']))
  const own = await owner.post(`/teams/${team.id}/topics`, { name: 'News', ...fields })
  t.equal(own.status, 400)
  shows(t, own, 'Create a topic Name The form must have at most 2,000 fields. Create topic')
  t.equal((await owner.get(`/teams/${team.id}/emails?${'a&'.repeat(2_000)}`)).status, 400)
})

t.test('open pages have no questions, and questions reject oversized forms', async (t) => {
  const asking = PAGES.filter(({ access, asks }) => access === 'open' && asks)
  t.strictSame(asking, [])
  const ask = (fields: Record<string, string | string[]>) =>
    owner.ask(`/teams/${team.id}/contacts/x%40example.org/erase`, fields)
  shows(t, await ask({ name: 'News', others: Array(499).fill('x') }), 'Erase all data about x@example.org')
  for (const fields of [{ name: 'x'.repeat(40_000) }, { name: Array(501).fill('x') }]) {
    const refused = await ask(fields)
    t.equal(refused.status, 400)
    shows(
      t,
      refused,
      /This form is too large to continue\. Go back, reload the page and submit the form again\./,
    )
  }
})

t.test('a multi-value field rejects too many values', async (t) => {
  const at = (path: string) => `/teams/${team.id}/${path}`
  const lines = await owner.post(at('contacts'), {
    email: 'lines@example.org',
    properties: '\n'.repeat(1_001),
  })
  t.equal(lines.status, 400)
  shows(t, lines, /Properties must have at most 1,000 parts/)
})

t.test("one user's large forms return 503 and delay no others", async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  // Capacity for one large form and a small one, because large bodies can only fill a share.
  const perOwner = Math.ceil(ENDLESS_FORM / LARGE_BODIES_SHARE)
  const bodies = createBodies(parser, { ...BODY_BUDGET, perOwner, patience: 200 })
  const small = { ...service, base: await listen(t, createApp({ ...service.deps, bodies })) }
  const [busy, other] = await Promise.all(
    ['busy', 'other'].map((name) =>
      signedIn(small, { team: team.id, role: 'owner', email: `${name}@example.com` }),
    ),
  )
  const stalled = [beginForm(t, small.base, busy), beginForm(t, small.base, busy)]
  const [refused] = await Promise.race(
    stalled.map((sent) => once(sent, 'response') as Promise<[IncomingMessage]>),
  )
  t.equal(refused.statusCode, 503)
  t.match(refused.headers['retry-after'], /^\d+$/)
  const html = Buffer.concat(await refused.toArray()).toString()
  shows(t, { html }, /Too many large requests at once\. Try again later\./)
  const save = (visitor?: Visitor) => visitor?.post(`/teams/${team.id}/topics`, { name: crypto.randomUUID() })
  t.equal((await save(other))?.status, 303, 'another person has room of their own')
  for (const sent of stalled) sent.destroy()
  await until('there is room again', async () => (await save(busy))?.status === 303)
})

t.test('an internal error only shows the request ID', async (t) => {
  const broken = await startService(t, { url: service.url, dashboard: { database: {} as never } })
  const { html, status } = await visitor(broken).get('/login/x')
  t.equal(status, 500)
  shows(
    t,
    { html },
    /The operator of this service can find the cause in the log under the request ID [\w-]{36}/,
  )
  t.notMatch(html, /TypeError|function/)
})
