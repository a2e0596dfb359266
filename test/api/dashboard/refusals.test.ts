/** Rejected API calls, per team and per key. */
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, deps, team } = await world(t)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const page = async () => {
  await deps.rejections.flush()
  return viewer.get(`/teams/${team.id}/integration/log`)
}

t.test('shows the responses of the last 20 rejected calls', async (t) => {
  const body = anEmail({ from: 'hello@nowhere.test', html: 'private words' })
  const refused = await call('POST', '/v1/emails', { key: team.key, body })
  t.equal(refused.status, 422)
  const shown = await page()
  shows(t, shown, / from must be at .* 422 from_domain_not_verified · POST \/v1\/emails .* Domains /)
  t.ok(shown.html.includes(team.key.slice(0, 10)))
  t.notMatch(shown.html, 'private words')
  t.notMatch(shown.html, team.key)
  t.ok(shown.html.includes(`data-copy-text="${refused.headers.get('x-request-id')}"`))
  for (let calls = 0; calls < 25; calls++)
    await call('GET', `/v1/contacts/number${calls}@example.org`, { key: team.key })
  const { html } = await page()
  t.equal(textOf(html).match(/ \S[^·]* 404 contact_not_found · /g)?.length, 20)
  t.notMatch(textOf(html), 'Fix in', 'only if a page can fix one of them')
  t.match(textOf(html), '/v1/contacts/:email')
})

t.test("a row shows the message and the request ID's end", async (t) => {
  const name = 'a-name-that-is-longer-than-any-line-of-a-list-would-show-it.example'
  const body = anEmail({ from: `hello@${name}` })
  const refused = await call('POST', '/v1/emails', { key: team.key, body })
  const id = refused.headers.get('x-request-id') ?? ''
  const { message } = refused.body.error
  t.match(message, name)
  const { html } = await page()
  const rows = html.match(/<tr[\s>][\s\S]*?<\/tr>/g) ?? []
  const row = rows.find((words) => words.includes(id)) ?? ''
  const wrapped = (row.match(/<td[\s\S]*?<\/td>/g) ?? []).filter((cell) =>
    /^<td class="[^"]*\bwrap\b/.test(cell),
  )
  t.ok(wrapped.map(textOf).includes(`${message} 422 from_domain_not_verified · POST /v1/emails`))
  t.ok(textOf(row).startsWith(message))
  t.match(textOf(row), `…${id.slice(-8)}`)
  t.notMatch(textOf(row), id)
})

t.test('a team only sees calls with its own keys', async (t) => {
  const other = await makeTeam(service, { domain: 'other.test' })
  const stranger = await signedIn(service, { team: other.id, role: 'owner' })
  await call('GET', '/v1/contacts', { key: `${team.key.slice(0, -1)}x` })
  await deps.rejections.flush()
  shows(t, await stranger.get(`/teams/${other.id}/integration/log`), 'No rejected calls.')
})

t.test("a key's page has its own rejected calls", async (t) => {
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const made = await owner.post(`/teams/${team.id}/keys`, { name: 'Web shop', scopes: ['contacts:read'] })
  const path = made.location ?? ''
  const key = /hg_[0-9A-Za-z]{49}/.exec((await owner.get(path)).html)?.[0] ?? ''
  shows(t, await owner.get(path), 'No rejected calls.')
  t.equal((await call('POST', '/v1/emails', { key, body: anEmail() })).status, 403)
  t.match((await page()).html, new RegExp(`href="/dashboard${path}">Web shop\\s*</a>`))
  const { html } = await owner.get(path)
  t.equal(html.match(/<tr data|<tr>/g)?.length, 2, 'the head and one call')
  shows(t, { html }, / 403 insufficient_scope · POST \/v1\/emails/)
})

t.test('keys show when and by whom they were created', async (t) => {
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const made = await owner.post(`/teams/${team.id}/keys`, { name: 'Till', scopes: ['contacts:read'] })
  const path = made.location ?? ''
  const rotated = await owner.press(path, `${path}/rotate`)
  for (const page of [path, rotated.location ?? '', `/teams/${team.id}/keys`])
    shows(t, await owner.get(page), new RegExp(`just now by ${owner.email}`))
  const { html } = await owner.get(`/teams/${team.id}/keys`)
  t.equal(textOf(html).match(new RegExp(`by ${owner.email}`, 'g'))?.length, 2, 'each of this user')
  t.notMatch(html, 'id="updates"', 'nothing changes by itself')
})
