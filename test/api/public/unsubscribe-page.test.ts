/**
 * The unsubscribe link of an email: token, page, button and RFC 8058 one-click (DECISIONS: Unsubscribe link).
 */
import { sql } from 'slonik'
import { unsubscribeToken } from '../../../db/messages/emails/unsubscribe-token.ts'
import { report } from '../../support/contacts.ts'
import { deleteEmailRows } from '../../support/email-rows.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, base, call, deps, team } = await world(t)
const { key } = team

let made = 0
/** Creates a contact and an email to it. `link` is the path that unsubscribes it. */
async function mailed(email = `c${++made}@example.org`) {
  const contact = (await call('POST', '/v1/contacts', { key, body: { email } })).body
  const sent = (await call('POST', '/v1/emails', { key, body: anEmail({ to: [email.toUpperCase()] }) })).body
  return { email, contact, sent, link: `/u/${sent.unsubscribe_token}` }
}
const show = async (email: string) =>
  (await call('GET', `/v1/contacts/${encodeURIComponent(email)}`, { key })).body

t.test('only emails to a stored contact have contact_id and unsubscribe_token', async (t) => {
  const { contact, sent } = await mailed()
  t.equal(sent.contact_id, contact.id)
  t.match(sent.unsubscribe_token, /^[\w-]{64,}$/)
  for (const to of [['stranger@example.org'], [contact.email, 'stranger@example.org']]) {
    const { body } = await call('POST', '/v1/emails', { key, body: anEmail({ to }) })
    t.strictSame([body.contact_id, body.unsubscribe_token], [null, null])
  }
})

t.test('GET shows a page with one button and changes nothing', async (t) => {
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

t.test('POST unsubscribes, and can be repeated', async (t) => {
  const { email, link } = await mailed()
  for (const _round of ['first', 'again']) {
    const { status, body } = await call('POST', link)
    t.equal(status, 200)
    t.match(body, /unsubscribed/)
    t.equal((await show(email)).status, 'unsubscribed')
  }
})

t.test('RFC 8058 one-click POST works in both encodings', async (t) => {
  const multipart = new FormData()
  multipart.set('List-Unsubscribe', 'One-Click')
  for (const body of [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), multipart]) {
    const { email, link } = await mailed()
    const response = await fetch(base + link, { method: 'POST', body })
    t.equal(response.status, 200)
    t.equal((await show(email)).status, 'unsubscribed')
  }
})

t.test('a form needs a valid token and has limits', async (t) => {
  const { email, contact, link } = await mailed()
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const post = async (path: string, raw: string) => {
    const { status, body } = await call('POST', path, { raw, headers })
    return `${status} ${body.error?.code}`
  }
  t.equal(await post(link, 'x'.repeat(32 * 1024 + 1)), '413 payload_too_large')
  t.equal(await post(link, 'a&'.repeat(2_000)), '400 bad_request')
  t.equal(await post('/u/anything', 'a&'.repeat(128 * 1024)), '404 not_found')
  t.strictSame(await show(email), contact)
  t.equal(await post(link, 'topic=x&'.repeat(1_500)), '200 undefined')
})

t.test('an address is HTML-escaped', async (t) => {
  const { link } = await mailed("o'hara&sons+`x`@example.org")
  const { body } = await call('GET', link)
  t.match(body, 'o&#x27;hara&amp;sons+&#x60;x&#x60;@example.org')
})

t.test('unknown tokens are 404', async (t) => {
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
  // Valid tokens without a matching contact. Mail clients get no error.
  for (const empty of [
    unsubscribeToken(deps.secrets, { team_id: team.id, id: sent.id, person: '' }),
    unsubscribeToken(deps.secrets, { team_id: other.id, id: sent.id, person: email }),
    unsubscribeToken(deps.secrets, { team_id: team.id, id: sent.id, person: 'stranger@example.org' }),
  ])
    for (const method of ['GET', 'POST']) t.equal((await call(method, `/u/${empty}`)).status, 200)
  t.strictSame(await show(email), contact)
  t.equal((await call('POST', '/u/%zz')).status, 400)
  t.equal((await call('PUT', `/u/${token}`)).status, 405)
})

t.test('every character of a token counts', async (t) => {
  // The length of the address decides if the last character has unused bits.
  for (const email of ['a@example.org', 'bo@example.org', 'cyd@example.org']) {
    const token = (await mailed(email)).link.slice('/u/'.length)
    const valid: string[] = []
    for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
      const { status } = await call('GET', `/u/${token.slice(0, -1)}${last}`)
      if (status !== 404) valid.push(last)
    }
    t.strictSame(valid, [token.at(-1)])
    t.equal((await call('GET', `/u/${token}.`)).status, 200, 'appended punctuation is ignored')
  }
})

t.test('the link works without its contact, or created again', async (t) => {
  const { email, link } = await mailed()
  await call('DELETE', `/v1/contacts/${email}`, { key })
  t.equal((await call('GET', link)).status, 200)
  t.equal((await call('POST', link)).status, 200)
  await call('POST', '/v1/contacts', { key, body: { email } })
  t.equal((await call('POST', link)).status, 200)
  t.equal((await show(email)).status, 'unsubscribed')
})

t.test('the link works without its email, for later contacts', async (t) => {
  const { email, sent, link } = await mailed()
  await deleteEmailRows(service, sql.fragment`id = ${sent.id}`)
  t.match(await call('POST', link), { status: 200, body: /is unsubscribed/ })
  t.equal((await show(email)).status, 'unsubscribed')
  const gone = await mailed()
  await call('DELETE', `/v1/contacts/${gone.email}`, { key })
  await deleteEmailRows(service, sql.fragment`id = ${gone.sent.id}`)
  t.equal((await call('POST', gone.link)).status, 200)
  t.match(await call('POST', '/v1/contacts', { key, body: { email: gone.email } }), {
    body: { status: 'unsubscribed' },
  })
})

t.test('a suppression is kept after an unsubscribe', async (t) => {
  const { email, link } = await mailed()
  await report(service, team, email, 'bounced')
  t.equal((await call('POST', link)).status, 200)
  t.equal((await show(email)).status, 'unsubscribed')
  t.equal((await call('POST', `/v1/contacts/${email}/resubscribe`, { key })).status, 409)
})
