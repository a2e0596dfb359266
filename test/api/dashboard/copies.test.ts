/** Emails with cc and bcc on the dashboard. Everyone who can see the email sees who got a copy. */
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import { framedIn, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, cli, database, team, send } = await world(t)
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const list = `/teams/${team.id}/emails`

const COPIES = {
  to: ['Ana <ana@example.org>'],
  cc: ['Zoe <zoe@example.org>'],
  bcc: ['hidden.7x@quiet.example'],
  subject: 'Your contract',
}

const happens = (email_id: string, kind: 'delivered' | 'bounced' | 'sent', recipient: string) =>
  database.transaction((tx) => {
    const event = { team_id: team.id, email_id, kind, recipient, event_key: `${kind} ${recipient}` }
    return applyEmailEvents(
      tx,
      [{ ...event, occurred_at: new Date(), detail: `250 for ${kind}` }],
      new Date(),
    )
  })

t.test('every role sees cc and bcc with their outcomes', async (t) => {
  const id = await send(COPIES)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: 'hidden.7x@quiet.example' } })
  await happens(id, 'delivered', 'ana@example.org')
  await happens(id, 'sent', 'zoe@example.org')
  await happens(id, 'bounced', 'hidden.7x@quiet.example')
  for (const person of [viewer, editor, owner, operator]) {
    const page = await person.get(`${list}/${id}`)
    shows(t, page, 'To Ana <ana@example.org> Cc Zoe <zoe@example.org> Bcc hidden.7x@quiet.example')
    shows(t, page, /As Address .* To ana@example\.org Ana delivered 250 for delivered/)
    shows(t, page, /Cc zoe@example\.org Zoe sent 250 for sent/)
    shows(t, page, /Bcc hidden\.7x@quiet\.example bounced 250 for bounced/)
    shows(t, page, 'Bounced for hidden.7x@quiet.example')
  }
})

t.test('only the raw view of the content shows bcc', async (t) => {
  const id = await send({ ...COPIES, text: 'Hello', headers: { 'X-Order': '17' } })
  const open = async (view: string) => {
    const { html } = await viewer.get(`${list}/${id}?view=${view}`)
    return textOf(html.slice(html.indexOf('>Content<'), html.indexOf('id="first"')))
  }
  t.notMatch(framedIn(await viewer.get(`${list}/${id}/preview`)), /quiet|zoe/)
  for (const view of ['text', 'html', 'headers']) t.notMatch(await open(view), /quiet\.example/)
  t.match(await open('raw'), '"bcc_emails": [ "hidden.7x@quiet.example" ]')
  t.match(await open('raw'), '"to_emails": [ "Ana <ana@example.org>" ]')
})

t.test('lists show the first recipient, and search finds each', async (t) => {
  const id = await send({ ...COPIES, subject: 'In lists', tags: ['lists'] })
  const cell = /Ana ana@example\.org \+2 In lists/
  shows(t, await viewer.get(`${list}?tag=lists`), cell)
  for (const address of ['zoe@example.org', 'Hidden.7X@quiet.example']) {
    shows(t, await viewer.get(`${list}?recipient=${address}&subject=lists`), cell)
    shows(t, await viewer.get(`/find?q=${address}`), cell)
  }
  await call('POST', '/v1/contacts', { key: team.key, body: { email: 'zoe@example.org' } })
  for (const address of ['zoe@example.org', 'hidden.7x@quiet.example'])
    t.match((await viewer.get(`/teams/${team.id}/contacts/${address}`)).html, id, 'on the contact’s page')
})

t.test('the CSV has to, cc and bcc', async (t) => {
  await send({ ...COPIES, tags: ['csv'] })
  await send({ tags: ['csv'] })
  const [head, plain, copies] = (await viewer.get(`${list}.csv?tag=csv`)).html.trim().split('\r\n')
  t.match(head, /^id,accepted,status,from,to,.*,cc,bcc,ended$/)
  t.match(plain, /,someone@example\.org,.*,,,$/)
  t.match(copies, /,Ana <ana@example\.org>,.*,Zoe <zoe@example\.org>,hidden\.7x@quiet\.example,$/)
})

t.test('a resend or a copy only goes to one address', async (t) => {
  const id = await send(COPIES)
  const page = await editor.get(`${list}/${id}`)
  shows(t, page, 'only to this address')
  t.notMatch(page.html, 'still to')
  const { location } = await editor.post(`${list}/${id}/resend`, { to: 'right@example.org' })
  const fresh = await cli.json(['email', 'show', team.id, location?.split('/').at(-1) ?? ''])
  t.strictSame(fresh.to_emails, ['right@example.org'])
  t.notOk('cc_emails' in fresh || 'bcc_emails' in fresh)
  shows(t, await viewer.get(location ?? ''), 'Resent version of an email to Ana <ana@example.org>. By')
  await editor.post(`${list}/${id}/copy`)
  const [copy] = await cli.json(['email', 'find', '--team', team.id, '--recipient', editor.email])
  t.strictSame(copy.to_emails, [editor.email])
  t.notOk('cc_emails' in copy || 'bcc_emails' in copy)
})

t.test('an erased bcc recipient is shown as a placeholder', async (t) => {
  const id = await send({ ...COPIES, bcc: ['gone.9z@quiet.example', 'stays@quiet.example'] })
  await cli.json(['contact', 'erase', team.id, 'gone.9z@quiet.example'])
  const page = await viewer.get(`${list}/${id}`)
  shows(t, page, 'Bcc erased@erased.invalid, stays@quiet.example')
  shows(t, page, /Bcc erased@erased\.invalid .* Bcc stays@quiet\.example /)
  t.notMatch(page.html, 'gone.9z')
})
