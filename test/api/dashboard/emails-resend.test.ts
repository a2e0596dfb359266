/** Emails sent again to a corrected address, and copies, with their content and links. */
import { sql } from 'slonik'
import { broadcastToken } from '../../../db/messages/emails/unsubscribe-token.ts'
import { recordBounce } from '../../support/bounce.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, database, team, send } = await world(t, { dashboard: { from: 'login@example.com' } })
const other = await makeTeam(service, { domain: 'example.net' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const list = `/teams/${team.id}/emails`

const logo = { filename: 'logo.png', content: btoa('picture'), content_id: 'logo@1' }

t.test('a copy has the same attachments, or fails without them', async (t) => {
  const id = await send({ subject: 'With a file', attachments: [logo] })
  t.equal((await editor.post(`${list}/${id}/copy`)).status, 303)
  const copied = await database.many(sql.unsafe`
    select attachments from emails where team_id = ${team.id} and subject = 'With a file'`)
  t.equal(copied.length, 2)
  t.strictSame(copied[0], copied[1])
  await database.query(sql.unsafe`delete from files where team_id = ${team.id}`)
  shows(t, await editor.post(`${list}/${id}/copy`), 'has been deleted: logo.png')
  t.equal((await editor.get(`${list}/${id}/files/0`)).status, 404)
  t.match((await editor.get(`${list}/${id}/preview`)).status, 200)
})

t.test('resends to a corrected address as a new email', async (t) => {
  const wrong = await send({ to: ['typo@example.org'], subject: 'Lost', tags: ['lost'], text: 'plain' })
  await recordBounce(service, { team_id: team.id, email_id: wrong }, { recipient: 'typo@example.org' })
  shows(t, await editor.get(`${list}/${wrong}`), /Lost bounced Bounced: the mailbox does not exist\./)
  const refused = await editor.post(`${list}/${wrong}/resend`, { to: 'no address' })
  t.match(
    refused.html,
    /value="no address" required autofocus aria-invalid="true" aria-describedby="([\w-]+\.to-fault)/,
  )
  shows(t, refused, 'Corrected address must be an email address.')
  const sent = await editor.post(`${list}/${wrong}/resend?list=tag%3Dlost`, { to: 'right@example.org' })
  const fresh = sent.location ?? ''
  t.not(fresh, `${list}/${wrong}`)
  const page = await editor.get(fresh)
  shows(t, page, /Lost queued .* To right@example\.org .* Tags lost/)
  shows(t, await editor.get(`${fresh}?view=text`), 'plain')
  shows(t, await editor.get(`${fresh}?view=raw`), '"subject": "Lost"')
})

t.test("a resend keeps the recipient's name, and links both emails", async (t) => {
  const first = await send({ to: ['Erika Mustermann <bounced@erika-x.example>'], subject: 'Your invoice' })
  const form = await editor.get(`${list}/${first}`)
  t.match(form.html, /type="email" value="bounced@erika-x\.example" required/, 'what the field itself takes')
  shows(t, form, 'still to “Erika Mustermann”')
  const { location: again } = await editor.post(`${list}/${first}/resend`, { to: 'right@erika-x.example' })
  const by = `. By ${editor.email}, just now.`
  const fresh = await viewer.get(again ?? '')
  shows(t, fresh, 'To Erika Mustermann <right@erika-x.example>')
  shows(
    t,
    fresh,
    `Resent version of an email to Erika Mustermann <bounced@erika-x.example>${by} The original`,
  )
  t.match(fresh.html, `href="/dashboard${list}/${first}">The original`)
  const former = await viewer.get(`${list}/${first}`)
  shows(t, former, `Resent to Erika Mustermann <right@erika-x.example>${by} The new email`)
  t.match(former.html, `href="/dashboard${again}">The new email`)
  const happened = new RegExp(`What happened Resent to a corrected address .* By ${editor.email}\\.`)
  shows(t, former, happened)
  await editor.post(`${list}/${first}/copy`)
  const original = await viewer.get(`${list}/${first}`)
  shows(t, original, `Copied to ${editor.email}${by} The copy`)
  const copy = /href="\/dashboard([^"]+)">The copy/.exec(original.html)?.[1] ?? ''
  shows(t, await viewer.get(copy), 'A copy of an email to Erika Mustermann <bounced@erika-x.example>')
  await owner.post(`${again}/delete`)
  shows(t, await viewer.get(`${list}/${first}`), 'Resent to an email that was deleted')
})

t.test("a resend's link unsubscribes its recipient, a copy's no one", async (t) => {
  const { key } = team
  const statusOf = async (email: string) => (await call('GET', `/v1/contacts/${email}`, { key })).body.status
  const [wrong, right] = ['wrong@erika-y.example', 'right@erika-y.example']
  for (const email of [wrong, right, editor.email])
    await call('POST', '/v1/contacts', { key, body: { email } })
  const said = { to: [wrong], text: 'Unsubscribe' }
  const { unsubscribe_token: token } = (await call('POST', '/v1/emails', { key, body: anEmail(said) })).body
  const url = `https://mail.example.com/u/${token}`
  const first = await send({ ...said, html: `<a href="${url}">x</a>`, text: `${url} x` })
  const linkIn = async (page: string) => {
    const [html, text] = await Promise.all(
      ['html', 'text'].map(async (view) => textOf((await editor.get(`${page}?view=${view}`)).html)),
    )
    const [, link] = /https:\/\/mail\.example\.com(\/u\/[\w-]+)/.exec(html ?? '') ?? []
    t.ok(link && text?.includes(`${link} x`), 'the same in html and text')
    return link ?? ''
  }
  const again = (await editor.post(`${list}/${first}/resend`, { to: right })).location ?? ''
  await editor.post(`${list}/${first}/copy`)
  const copy =
    /href="\/dashboard([^"]+)">The copy/.exec((await editor.get(`${list}/${first}`)).html)?.[1] ?? ''
  t.match((await call('POST', await linkIn(copy))).body, 'You aren’t subscribed')
  t.equal(await statusOf(editor.email), 'subscribed')
  t.match((await call('POST', await linkIn(again))).body, right)
  t.strictSame([await statusOf(right), await statusOf(wrong)], ['unsubscribed', 'subscribed'])
  t.equal(await linkIn(`${list}/${first}`), `/u/${token}`)
})

t.test("a resend doesn't change links of other teams and contacts", async (t) => {
  const tokenTo = async (key: string, email: string, from = 'hello@example.com') => {
    await call('POST', '/v1/contacts', { key, body: { email } })
    const { body } = await call('POST', '/v1/emails', { key, body: anEmail({ from, to: [email] }) })
    t.match(body.unsubscribe_token, /./)
    return body.unsubscribe_token as string
  }
  const theirs = await tokenTo(other.key, 'full@erika-y.example', 'hello@example.net')
  const somebody = await tokenTo(team.key, 'somebody@erika-y.example')
  const own = await tokenTo(team.key, 'full@erika-y.example')
  const text = [theirs, somebody, own].map((token) => `/u/${token}`).join(' ')
  const id = await send({ to: ['full@erika-y.example'], text })
  const { location = '' } = await editor.post(`${list}/${id}/resend`, { to: 'victim@erika-y.example' })
  const shown = textOf((await editor.get(`${location}?view=text`)).html)
  const kept = [theirs, somebody, own].map((token) => shown.includes(token))
  t.strictSame(kept, [true, true, false])
})

const linkOfBroadcast = (person: string, of = team.id) =>
  `/u/${broadcastToken(service.deps.secrets, { team_id: of, broadcast_id: of, person })}`

t.test("a resend replaces a broadcast's link with its recipient's", async (t) => {
  const [first, second, somebody] = ['full@erika-y.example', 'free@erika-y.example', 'some@erika-y.example']
  const id = await send({
    to: [first],
    text: [first, somebody].map((each) => linkOfBroadcast(each)).join(' '),
  })
  const { location = '' } = await editor.post(`${list}/${id}/resend`, { to: second })
  const shown = textOf((await editor.get(`${location}?view=text`)).html)
  const kept = [first, second, somebody].map((each) => shown.includes(linkOfBroadcast(each)))
  t.strictSame(kept, [false, true, true])
})

t.test("can't resend an email with over 100 links", async (t) => {
  const linksOf = (of: string) => Array.from({ length: 101 }, (_, nth) => linkOfBroadcast(`${nth}`, of))
  const [own, theirs] = [linksOf(team.id), linksOf(other.id)]
  for (const [text, status] of [
    [own, 400],
    [[...own.slice(1), ...theirs], 303],
  ] as const) {
    const id = await send({ to: ['full@erika-y.example'], text: [...text, ...text].join(' ') })
    t.equal((await editor.post(`${list}/${id}/resend`, { to: 'free@erika-y.example' })).status, status)
  }
})
