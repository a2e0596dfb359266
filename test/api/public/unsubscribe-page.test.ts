/** The unsubscribe link of an email: token, page, button, and RFC 8058 one-click (DECISIONS: Unsubscribe link). */
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import { unsubscribeToken } from '../../../db/messages/emails/unsubscribe-token.ts'
import { report } from '../../support/contacts.ts'
import { erasePerson } from '../../support/erase.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const UNKNOWN = '00000000-0000-7000-8000-000000000000'

const { service, base, call, deps, database, team } = await world(t)
const { key } = team

let made = 0
/** A contact, an email to it, and the path that unsubscribes it. */
async function mailed(email = `c${++made}@example.org`) {
  const contact = (await call('POST', '/v1/contacts', { key, body: { email } })).body
  const sent = (await call('POST', '/v1/emails', { key, body: anEmail({ to: [email.toUpperCase()] }) })).body
  return { email, contact, sent, link: `/u/${sent.unsubscribe_token}` }
}
const show = async (email: string) =>
  (await call('GET', `/v1/contacts/${encodeURIComponent(email)}`, { key })).body

t.test('contact_id and unsubscribe_token are set on emails to stored contacts, and no others', async (t) => {
  const { contact, sent } = await mailed()
  t.equal(sent.contact_id, contact.id)
  t.match(sent.unsubscribe_token, /^[\w-]{80,}$/)
  t.notMatch(Buffer.from(sent.unsubscribe_token, 'base64url').toString('latin1'), contact.email)
  for (const to of [['stranger@example.org'], [contact.email, 'stranger@example.org']]) {
    const { body } = await call('POST', '/v1/emails', { key, body: anEmail({ to }) })
    t.strictSame([body.contact_id, body.unsubscribe_token], [null, null])
  }
})

t.test('GET shows a small page with one button, and changes nothing', async (t) => {
  const { email, contact, link } = await mailed()
  const { status, headers, body } = await call('GET', link)
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^text\/html; charset=utf-8$/)
  t.match(headers.get('content-security-policy'), /default-src 'none'/)
  t.match([headers.get('cache-control'), headers.get('referrer-policy')], ['no-store', 'no-referrer'])
  t.match(body, email)
  t.equal(body.match(/<button/g)?.length, 1)
  t.match(body, /<form method="post">/)
  t.equal((await fetch(base + link, { method: 'HEAD' })).status, 200)
  t.strictSame(await show(email), contact)
})

t.test('POST unsubscribes, and a repeated one is no fault', async (t) => {
  const { email, link } = await mailed()
  for (const _round of ['first', 'again']) {
    const { status, body } = await call('POST', link)
    t.equal(status, 200)
    t.match(body, /unsubscribed/)
    t.equal((await show(email)).status, 'unsubscribed')
  }
})

t.test('RFC 8058 one-click POST works without a page, in both encodings', async (t) => {
  const multipart = new FormData()
  multipart.set('List-Unsubscribe', 'One-Click')
  for (const body of [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), multipart]) {
    const { email, link } = await mailed()
    const response = await fetch(base + link, { method: 'POST', body })
    t.equal(response.status, 200)
    t.equal((await show(email)).status, 'unsubscribed')
  }
})

t.test('a form behind a link is read with a token of ours only, up to 16 KiB and 2,000 fields', async (t) => {
  const { email, contact, link } = await mailed()
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const post = async (path: string, raw: string) => {
    const { status, body } = await call('POST', path, { raw, headers })
    return `${status} ${body.error?.code}`
  }
  t.equal(await post(link, 'x'.repeat(16 * 1024 + 1)), '413 payload_too_large')
  t.equal(await post(link, 'a&'.repeat(2_000)), '400 bad_request')
  t.equal(await post('/u/anything', 'a&'.repeat(128 * 1024)), '404 not_found')
  t.strictSame(await show(email), contact)
  t.equal(await post(link, 'topic=x&'.repeat(1_500)), '200 undefined')
})

t.test('an address that HTML would read otherwise is shown as it is', async (t) => {
  const { link } = await mailed("o'hara&sons+`x`@example.org")
  const { body } = await call('GET', link)
  t.match(body, 'o&#x27;hara&amp;sons+&#x60;x&#x60;@example.org')
})

t.test('unknown tokens are 404, with the envelope', async (t) => {
  const { email, contact, sent } = await mailed()
  const token: string = sent.unsubscribe_token
  const other = await makeTeam(service)
  for (const bad of [
    'x',
    token.slice(0, -1),
    `${token.slice(0, -1)}${token.endsWith('A') ? 'Q' : 'A'}`,
    `${token.slice(0, 10)}${token[10] === 'A' ? 'B' : 'A'}${token.slice(11)}`,
    `${token}AAAA`,
    '%F0%9F%98%80',
  ]) {
    for (const method of ['GET', 'POST']) {
      const reply = await call(method, `/u/${bad}`)
      t.strictSame([reply.status, reply.body.error?.code], [404, 'not_found'], `${method} ${bad}`)
    }
  }
  // They are ours, and of nobody who could be unsubscribed: a mail program gets no fault to show.
  for (const [team_id, email_id, person] of [
    [team.id, UNKNOWN, ''],
    [other.id, sent.id, email],
    [team.id, sent.id, 'stranger@example.org'],
  ] as const) {
    const empty = unsubscribeToken(deps.secrets, { team_id, email_id, person })
    for (const method of ['GET', 'POST']) t.equal((await call(method, `/u/${empty}`)).status, 200)
  }
  t.strictSame(await show(email), contact)
  t.equal((await call('POST', '/u/%zz')).status, 400)
  t.equal((await call('PUT', `/u/${token}`)).status, 405)
})

t.test('a deleted contact gets the same answer; made again, the old link unsubscribes it', async (t) => {
  const { email, link } = await mailed()
  await call('DELETE', `/v1/contacts/${email}`, { key })
  t.equal((await call('GET', link)).status, 200)
  t.equal((await call('POST', link)).status, 200)
  await call('POST', '/v1/contacts', { key, body: { email } })
  t.equal((await call('POST', link)).status, 200)
  t.equal((await show(email)).status, 'unsubscribed')
})

t.test('a link finds its person though its email is gone, or the person was erased', async (t) => {
  for (const [gone, act] of [
    ['its email', (id: string) => removeEmail({ tx: database, now: new Date(), actor: 'cli' }, team.id, id)],
    ['the person', (_id: string, email: string) => erasePerson(deps, team.id, email)],
  ] as const) {
    const { email, sent, link } = await mailed()
    await act(sent.id, email)
    if (gone === 'the person') await call('POST', '/v1/contacts', { key, body: { email } })
    t.match((await call('GET', link)).body, email, gone)
    t.match(await call('POST', link), { status: 200, body: /is unsubscribed/ })
    t.equal((await show(email)).status, 'unsubscribed')
  }
  const { email, link } = await mailed()
  await erasePerson(deps, team.id, email)
  t.match(await call('POST', link), { status: 200, body: /Nothing is sent to you/ })
  await call('POST', '/v1/contacts', { key, body: { email } })
  t.equal((await show(email)).status, 'unsubscribed', 'made again after the press')
})

t.test('a suppression is remembered', async (t) => {
  const { email, link } = await mailed()
  await report(service, team, email, 'bounced')
  t.equal((await call('POST', link)).status, 200)
  t.equal((await show(email)).status, 'unsubscribed')
  t.equal((await call('POST', `/v1/contacts/${email}/resubscribe`, { key })).status, 409)
})
