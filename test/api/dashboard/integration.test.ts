/** The page Integration for a first API call. */
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aTemplate, makeTemplate, setStatus } from '../../support/whatsapp.ts'

const service = await startService(t)
const mainOf = (html: string): string => html.split('<main')[1] ?? ''

t.test('lists the missing steps before the first call, with links', async (t) => {
  const { id } = await makeTeam(service, { domain: 'fresh.test' })
  const owner = await signedIn(service, { team: id, role: 'owner' })
  const page = async () => (await owner.get(`/teams/${id}/integration`)).html
  t.notMatch(textOf(await page()), 'Before your first call', 'nothing is lacking')
  await owner.press(`/teams/${id}/domains/fresh.test`, `/teams/${id}/domains/fresh.test/delete`)
  await owner.post(`/teams/${id}/domains`, { name: 'pending.test' })
  const html = mainOf(await page())
  t.match(textOf(html), /Before your first call .* the requests below are rejected.* verify it/)
  t.ok(html.includes(`href="/dashboard/teams/${id}/domains/pending.test"`), 'the domain that is not verified')
  t.ok(html.indexOf('id="lacking"') < html.indexOf('curl '), 'before any request')
  const steps = (html.match(/<ol class="steps">[\s\S]*?<\/ol>/)?.[0] ?? '').match(/<li class="[^"]*"/g)
  t.strictSame(steps, ['<li class="good"', '<li class=""', '<li class="good"'])
})

t.test('suggests a new key if the only one was revoked', async (t) => {
  const { id } = await makeTeam(service, { domain: 'keyless.test' })
  const owner = await signedIn(service, { team: id, role: 'owner' })
  const [page = ''] =
    /\/teams\/[0-9a-f-]+\/keys\/[0-9a-f-]+/.exec((await owner.get(`/teams/${id}/keys`)).html) ?? []
  await owner.press(page, `${page}/revoke`)
  const { html } = await owner.get(`/teams/${id}/integration`)
  t.match(html, /<li class="">(?:(?!<\/li>)[\s\S])*Create an API key/)
})

t.test('a command sets the key that the examples use', async (t) => {
  const { id } = await makeTeam(service, { domain: 'set.test' })
  const viewer = await signedIn(service, { team: id, role: 'viewer' })
  const html = mainOf((await viewer.get(`/teams/${id}/integration`)).html)
  const [, set] = /<code[^>]*>export (\w+)/.exec(html) ?? []
  const [, asked] = /Bearer \$(\w+)/.exec(html) ?? []
  t.equal(set, asked)
  t.ok(html.indexOf('export ') < html.indexOf('curl '))
})

/** Returns the request bodies on a page, by the title of the example. */
const bodiesIn = (html: string): Map<string, unknown> =>
  new Map(
    [
      ...html.matchAll(
        /<(?:h2|summary)>([^<]*)<\/(?:h2|summary)>(?:(?!<h2>|<summary>)[\s\S])*?<code[^>]*>([^<]*)<\/code>/g,
      ),
    ].flatMap(([, title = '', code = '']): [string, unknown][] => {
      const [, body] = / -d '([\s\S]*)'$/.exec(textOf(code)) ?? []
      return body === undefined ? [] : [[title, JSON.parse(body)]]
    }),
  )

t.test('the example with a template works, also with List-Unsubscribe headers', async (t) => {
  const { id, key } = await makeTeam(service, { domain: 'letter.test' })
  const editor = await signedIn(service, { team: id, role: 'editor' })
  const made = await editor.post(`/teams/${id}/templates`, {
    name: 'Letter',
    html: '<p>{{name}}</p>',
    text: '',
  })
  await editor.post(`${made.location}/list-unsubscribe`, { wanted: 'yes' })
  const body = bodiesIn((await editor.get(`/teams/${id}/integration`)).html).get('Send the template Letter')
  t.match(await service.call('POST', '/v1/emails', { key, body }), { status: 201 })
})

t.test('the example only uses a sendable WhatsApp template', async (t) => {
  const { id, key } = await makeTeam(service, { domain: 'chat.test' })
  const viewer = await signedIn(service, { team: id, role: 'viewer' })
  const bodies = async () => bodiesIn((await viewer.get(`/teams/${id}/integration`)).html)
  const first = await makeTemplate(service, id)
  await setStatus(service, id, first.id, 'rejected')
  t.notMatch([...(await bodies()).keys()].join(), 'WhatsApp')
  await makeTemplate(service, id, aTemplate({}, { name: 'second' }))
  const body = (await bodies()).get('Send the WhatsApp template second')
  t.match(await service.call('POST', '/v1/whatsapp/messages', { key, body }), { status: 201 })
})

t.test('lists test recipients, complete only in a test team', async (t) => {
  const live = await makeTeam(service, { domain: 'live.test' })
  const test = await makeTeam(service, { domain: 'test.test', test: true })
  const pages = [live, test].map(async ({ id }) => {
    const viewer = await signedIn(service, { team: id, role: 'viewer' })
    return viewer.get(`/teams/${id}/integration/recipients`)
  })
  const [ofLive, ofTest] = await Promise.all(pages)
  if (!ofLive || !ofTest) return
  shows(t, ofLive, /only work in a test team.* This team delivers all messages\. .* bounced@/)
  t.notMatch(ofLive.html, 'bounced@example.com')
  shows(t, ofTest, /Nothing is delivered.* bounced@example\.com .*bounced Accepted, then bounced/)
  shows(
    t,
    ofTest,
    /bounced \(shown as skipped\) Not sent, .* queued \(shown as accepted\) Accepted, without any reports/,
  )
  t.notMatch(ofTest.html, 'class="tag', 'nothing has happened')
  t.notMatch(ofTest.html, 'data-label="Status"', 'a result needs no label in a card')
  t.match(ofTest.html, 'data-copy-text="bounced@example.com"')
  t.match(ofTest.html, /data-copy-text="\+15555550103"/)
  const viewer = await signedIn(service, { team: test.id, role: 'viewer' })
  shows(t, await viewer.get(`/teams/${test.id}/integration`), /"to": \[ "delivered@example\.com" \]/)
})

t.test('examples have the same body in all three languages', async (t) => {
  const { id } = await makeTeam(service, { domain: 'languages.test' })
  const viewer = await signedIn(service, { team: id, role: 'viewer' })
  const html = async (query: string) => (await viewer.get(`/teams/${id}/integration${query}`)).html
  const bodies = [
    bodiesIn(await html('')).get('Add a contact'),
    JSON.parse(
      /JSON\.stringify\((\{[^)]*someone[^)]*Ana[^)]*\})\),/.exec(
        textOf(await html('?language=Node.js')),
      )?.[1] ?? '{}',
    ),
    JSON.parse(
      /json\.dumps\((\{ "email": "someone[\s\S]*?\} \})\)\.encode/.exec(
        textOf(await html('?language=Python')),
      )?.[1] ?? '{}',
    ),
  ]
  const body = { email: 'someone@example.com', properties: { name: 'Ana' } }
  t.strictSame(bodies, [body, body, body])
  t.equal((await viewer.get(`/teams/${id}/integration?language=perl`)).status, 400)
})
