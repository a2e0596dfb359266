/** Filters of lists: validation, and keeping the input. */
import { PAGES } from '../../../api/dashboard/routes.ts'
import { shows, signedIn, textOf, visitor } from '../../support/dashboard.ts'
import { sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, team } = await world(t)
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const at = (path: string): string => `/teams/${team.id}/${path}`
await sendEmail(service, team, { subject: 'Kept', tags: ['kept'] })

t.test('every list and CSV rejects invalid filter values', async (t) => {
  for (const path of [
    `${at('emails')}?before=abc`,
    `${at('emails')}?status=bouncd`,
    `${at('emails')}?template=welcome`,
    `${at('emails')}?from=%2B275760-09-13`,
    `${at('emails')}?to=2026-02-30`,
    `${at('emails')}?from=1969-12-31`,
    `${at('emails')}?subject=${'word+'.repeat(21)}`,
    `${at('emails.csv')}?status=bouncd`,
    `${at('emails.csv')}?recipient=nobody`,
    `${at('emails/all')}?status=bouncd`,
    `${at('emails/all')}?statsu=bounced`,
    `${at('emails/all')}?tag=kept&tag=other`,
    `${at('contacts')}?before=abc`,
    `${at('contacts')}?status=bouncd`,
    `${at('contacts')}?topic=news`,
    `${at('contacts.csv')}?status=bouncd`,
    `${at('contacts.csv')}?statsu=bounced`,
    `${at('contacts.csv')}?status=subscribed&status=bounced`,
    `${at('broadcasts')}?before=abc`,
    `${at('whatsapp')}?before=abc`,
    `${at('whatsapp')}?status=bouncd`,
    `${at('whatsapp')}?template=welcome`,
    `${at('whatsapp')}?recipient=nobody`,
    '/operator/teams?after=abc',
    '/operator/audit?before=abc',
    '/operator/reports?before=abc',
    '/operator/reports?provider=smpt',
  ])
    t.equal((await operator.get(path)).status, 400, path)
})

t.test('every list and CSV rejects NUL and long values', async (t) => {
  const long = 'a'.repeat(1_001)
  const fields = ['recipient', 'subject', 'id', 'status', 'tag', 'email', 'name', 'before', 'v.name']
  for (const { method, path, access } of PAGES) {
    if (method !== 'GET' || access === 'open' || /:(?!team)/.test(path)) continue
    const here = path.replace(':team', team.id)
    // dispatch.ts checks every parameter before the page does.
    for (const name of path === '/teams/:team/emails' ? fields : ['any']) {
      const { status, html } = await operator.get(`${here}?${name}=a%00b`)
      t.equal(status, 400, `${here}?${name}`)
      shows(t, { html }, 'must not contain NUL characters')
    }
  }
  for (const [path, name] of [
    [at('emails'), 'tag'],
    [at('emails.csv'), 'subject'],
    [at('contacts'), 'q'],
    [at('contacts.csv'), 'q'],
    [at('whatsapp'), 'id'],
    ['/find', 'id'],
    ['/operator/teams', 'name'],
    ['/operator/reports', 'reason'],
  ])
    t.equal((await operator.get(`${path}?${name}=${long}`)).status, 400, `${path}?${name}`)
})

t.test('date fields name their time zone', async (t) => {
  await owner.post(at('webhooks'), { url: 'https://hooks.example.com/in', types: '*' })
  const webhook = /webhooks\/[0-9a-f-]{36}/.exec((await owner.get(at('webhooks'))).html)?.[0] ?? ''
  for (const path of ['emails', 'whatsapp', 'audit', 'keys', webhook]) {
    const { html } = await owner.get(at(path))
    const ids = [...html.matchAll(/<input id="([^"]*)"[^>]* type="date"/g)].map(([, id]) => id)
    t.equal(ids.length, path === 'keys' ? 1 : 2, path)
    for (const id of ids) t.match(html, new RegExp(`<label for="${id}">[^<]* day \\(UTC\\)</label>`), path)
  }
})

t.test('a rejected filter keeps its values and shows no list', async (t) => {
  const refused = await owner.get(`${at('emails')}?recipient=nobody&tag=kept&status=queued`)
  t.equal(refused.status, 400)
  shows(t, refused, /Recipient must be an email address. "nobody" isn't one/)
  // The error is under its field, which has the focus.
  t.match(refused.html, /name="recipient"[^>]* value="nobody" autofocus[^>]* aria-invalid="true"/)
  t.match(refused.html, /class="fault" id="[^"]*recipient-fault">[^<]*must be an email address/)
  t.match(refused.html, /name="tag"[^>]* value="kept"/)
  t.match(refused.html, /name="status" value="queued"/)
  t.notMatch(refused.html, /Kept<|emails\.csv|emails\/all/)
})

t.test('an unknown value of a choice is named once, with a link to all rows', async (t) => {
  for (const [path, words] of [
    ['emails?kind=broadcast', 'Kind of email can’t be “broadcast”. It can be single, broadcasts or all.'],
    ['emails?status=bouncd', 'Status can’t be “bouncd”.'],
    ['whatsapp?status=bouncd', 'Status can’t be “bouncd”.'],
  ] as const) {
    const refused = await owner.get(at(path))
    t.equal(refused.status, 400, path)
    t.equal(textOf(refused.html).split(words).length, 2, `${path}: once`)
    shows(t, refused, 'Choose another value, or show all rows. Clear the filter')
    const [, list = ''] = /href="\/dashboard([^"]*)">Clear the filter/.exec(refused.html) ?? []
    t.equal(list, at(path).split('?')[0])
    t.notMatch(refused.html, /<details open/, `${path}: more filters are folded`)
  }
  const { html } = await owner.get(at('emails?kind=broadcast'))
  t.match(html, /name="kind"[^>]*><option value="" selected>Choose a value<\/option>/, 'no kind looks chosen')
})

t.test('a filter with only a chip is cleared by its chip', async (t) => {
  const clear = /<a [^>]*>Clear</
  for (const path of ['emails?status=queued', 'contacts?status=bounced', 'whatsapp?status=failed']) {
    const { html } = await owner.get(at(path))
    t.notMatch(html, clear, path)
    t.match(html, new RegExp(`href="/dashboard${at(path.split('?')[0] ?? '')}">All`), path)
  }
  for (const path of ['emails?status=queued&tag=kept', 'contacts?q=ana', 'emails?kind=all'])
    t.match((await owner.get(at(path))).html, clear, path)
})

t.test("rejects a key's invalid last day and keeps its checkboxes", async (t) => {
  for (const expires of ['+275760-09-13', '9999-12-31', 'tomorrow', '2026-02-30']) {
    const sent = { name: 'shop', scopes: ['contacts:read'], expires }
    const refused = await owner.post(at('keys'), sent)
    t.equal(refused.status, 400, expires)
    const ticked = [...refused.html.matchAll(/name="scopes" value="([^"]+)" checked/g)]
    t.equal(ticked.map(([, scope]) => scope).join(), 'contacts:read')
  }
  const none = await owner.post(at('keys'), { name: 'none' })
  t.equal(none.status, 400)
  t.notMatch(none.html, / checked/)
})

t.test('sign-in returns to the list with its filter', async (t) => {
  const path = `${at('emails')}?tag=kept&status=queued`
  const { location } = await visitor(service).get(path)
  t.equal(location, `/login?${new URLSearchParams({ return_to: `/dashboard${path}` })}`)
})

t.test('CSV files start with a byte order mark', async (t) => {
  for (const file of ['emails.csv', 'contacts.csv']) {
    const answer = await fetch(`${service.base}/dashboard${at(file)}`, {
      headers: { Cookie: [...owner.cookies].map((pair) => pair.join('=')).join('; ') },
    })
    t.strictSame(Buffer.from(await answer.arrayBuffer()).subarray(0, 3), Buffer.from('efbbbf', 'hex'), file)
  }
})
