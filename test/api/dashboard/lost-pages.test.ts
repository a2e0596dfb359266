/** Text in a form whose page has changed or was deleted is kept, with its labels. */
import { randomUUID } from 'node:crypto'
import { sql } from 'slonik'
import { changeContact, contactIdentity, removeContact } from '../../../db/audience/contacts/edit.ts'
import { removeTemplate } from '../../../db/content/templates/remove.ts'
import { ERASED } from '../../../db/validation/addressees.ts'
import { recordBounce } from '../../support/bounce.ts'
import { shows, signedIn, textOf, type Visitor } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, database, team } = await world(t)
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const by = () => ({ tx: database, now: new Date(), actor: 'cli' })

/** Returns the texts on a page that can be copied, with their titles. */
const copied = (html: string): [title: string, text: string][] =>
  [...html.matchAll(/<h2>([^<]*)<\/h2>\s*<div class="codebox"><pre[^>]*><code[^>]*>([^<]*)</g)].map(
    ([, title = '', text = '']) => [title, text],
  )

/** @returns the path of its page. */
async function makeTemplate(): Promise<string> {
  const form = { name: 'Offer', html: 'Hi', text: '' }
  return (await editor.post(`/teams/${team.id}/templates`, form)).location ?? ''
}

const contact = `/teams/${team.id}/contacts/gone%40example.org`
const identity = contactIdentity('gone@example.org')
async function makeContact() {
  const body = { email: 'gone@example.org', properties: { 'Home town': 'Lisbon', vip: 'yes' } }
  await service.call('POST', '/v1/contacts', { key: team.key, body })
  const form = formTo((await editor.get(contact)).html, contact)
  const [value = ''] = Object.keys(form).filter((name) => form[name]?.[0] === 'Lisbon')
  return { form, value }
}

t.test('a page without access names the owners, and links back', async (t) => {
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const above = `/teams/${team.id}`
  const refused = await editor.get(`${above}/audit`)
  t.equal(refused.status, 403)
  shows(t, refused, new RegExp(`You need the owner role.* An owner can change your role: .*${owner.email}`))
  t.match(refused.html, `href="/dashboard${above}">Go back</a>`)
  const missing = await editor.get(`${above}/templates/${randomUUID()}`)
  t.equal(missing.status, 404)
  t.match(missing.html, `href="/dashboard${above}/templates">Go back</a>`)
  t.notMatch(missing.html, owner.email, 'nobody can give access to nothing')
  const closed = await editor.get(`${above}/people/${randomUUID()}/nothing`)
  t.match(closed.html, `href="/dashboard${above}/people">Go back</a>`, 'a person’s page is for owners')
  const nothing = await editor.get('/nothing')
  shows(t, nothing, 'Check the address, or search.')
  t.match(nothing.html, /class="button" href="\/dashboard">Overview</, 'the only next step')
  const other = await makeTeam(service, { domain: 'other.test' })
  for (const id of [other.id, randomUUID()]) {
    const foreign = await editor.get(`/teams/${id}/emails`)
    t.equal(foreign.status, 404)
    t.notMatch(foreign.html, 'Go back', 'the same for a team that exists and one that doesn’t')
  }
})

t.test('the page of a deleted message explains who can delete it', async (t) => {
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const other = await makeTeam(service, { domain: 'unseen.test' })
  const send = async (by: typeof team, from: string): Promise<string> =>
    (await service.call('POST', '/v1/emails', { key: by.key, body: anEmail({ from }) })).body.id
  const id = await send(team, 'hello@example.com')
  t.equal((await owner.post(`/teams/${team.id}/emails/${id}/delete`, { confirmed: 'yes' })).status, 303)
  const page = async (who: Visitor, path: string, given: string) => {
    const seen = await who.get(`/teams/${team.id}/${path}/${given}?list=status%3Dqueued`)
    t.equal(seen.status, 404, path)
    return seen
  }
  const deleted = await page(owner, 'emails', id)
  shows(
    t,
    deleted,
    /Email not found .*no email with this ID\. .* Time in its ID .* Possible reasons Deletion by an owner, .* Kept after deletion Its counts/,
  )
  for (const href of ['emails?status=queued', 'webhooks/events', 'audit?action=email.delete'])
    t.ok(deleted.html.replaceAll('&#x3D;', '=').includes(`href="/dashboard/teams/${team.id}/${href}"`), href)
  t.notMatch((await page(editor, 'emails', id)).html, '/audit', 'for owners')
  const words = async (given: string) =>
    textOf((await page(owner, 'emails', given)).html)
      .replaceAll(given, 'ID')
      .replaceAll(/\d+(:\d+)*| seconds? ago|just now/g, '')
  const unknown = await words(await send(other, 'hello@unseen.test'))
  t.equal(unknown, await words(id), "the same for another team's email")
  t.notMatch(await words(randomUUID()), 'Time in its ID')
  shows(t, await page(owner, 'whatsapp', randomUUID()), /WhatsApp message not found /)
  shows(t, await page(owner, 'emails', 'no-id'), 'Page not found')
})

t.test("doesn't link to deleted emails and erased recipients", async (t) => {
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = `/teams/${team.id}`
  const { body } = await service.call('POST', '/v1/emails', {
    key: team.key,
    body: anEmail({ to: ['bounced-once@example.org'] }),
  })
  await recordBounce(
    service,
    { team_id: team.id, email_id: body.id },
    { recipient: 'bounced-once@example.org', detail: '550 5.1.1 No such user' },
  )
  const contact = `${at}/contacts/bounced-once%40example.org`
  t.match((await owner.get(contact)).html, `${at}/emails/${body.id}"`)
  t.equal((await owner.post(`${at}/emails/${body.id}/delete`, { confirmed: 'yes' })).status, 303)
  const kept = await owner.get(contact)
  shows(t, kept, /Suppressed: hard bounce/)
  t.notMatch(kept.html, `${at}/emails/${body.id}`)
  const erased = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  const place = `${at}/emails/${erased.body.id}`
  t.match((await owner.get(place)).html, `${at}/contacts/`)
  await database.query(sql.unsafe`
    update accepted_emails set to_emails = ${sql.array([ERASED], 'text')} where id = ${erased.body.id}`)
  const seen = await owner.get(place)
  shows(t, seen, ERASED)
  t.notMatch(seen.html, `${at}/contacts/`)
})

t.test('keeps the text of a template deleted before saving', async (t) => {
  const page = await makeTemplate()
  const form = formTo((await editor.get(page)).html, `${page}/draft`)
  await removeTemplate(by(), team.id, page.split('/').at(-1) ?? '')
  const html = `${'An offer of 600 kilobytes. '.repeat(24_000)}The end`
  const sent = await editor.post(`${page}/draft`, { ...form, html, text: 'In plain text' })
  t.equal(sent.status, 404)
  t.strictSame(copied(sent.html), [
    ['HTML', html],
    ['Plain text (optional)', 'In plain text'],
  ])
})

t.test('only shows text fields, with their labels', async (t) => {
  const { form, value } = await makeContact()
  await removeContact(by(), team.id, identity)
  const sent = await editor.post(contact, { ...form, [value]: 'Porto', 'new_name.0': 'shoe size' })
  t.equal(sent.status, 404)
  shows(t, sent, 'Your input')
  t.strictSame(copied(sent.html), [
    ['Home town', 'Porto'],
    ['vip', 'yes'],
    ['New property', 'shoe size'],
  ])
  t.notMatch(sent.html, form.shown?.[0] ?? 'no field', 'no field that the page fills in itself')
})

t.test("doesn't render an oversized text", async (t) => {
  const form = { labels: 'html HTML', html: 'x'.repeat(2_200_001) }
  const path = `/teams/${team.id}/templates/${crypto.randomUUID()}/draft`
  const long = await editor.post(path, form)
  t.equal(long.status, 404)
  t.ok(long.html.length < 20_000, `${long.html.length} characters`)
  shows(t, long, 'Go back in your browser')
  const odd = await editor.post(path, { labels: '', '': 'no field of ours' })
  t.notMatch(odd.html, 'no field of ours')
})

t.test('a rejected form shows the text of fields it lost', async (t) => {
  const { form, value } = await makeContact()
  await changeContact(by(), team.id, identity, { properties: { vip: 'yes' } })
  const typed = { ...form, [value]: 'Porto', 'new_name.0': 'vip', 'new_value.0': 'twice' }
  const sent = await editor.post(contact, typed)
  t.equal(sent.status, 400)
  t.strictSame(copied(sent.html), [['Home town', 'Porto']])
  t.match(formTo(sent.html, contact), { 'new_value.0': ['twice'] }, 'the rest is in its fields')
})

t.test('a form of an earlier session keeps its text', async (t) => {
  const page = await makeTemplate()
  const form = formTo((await editor.get(page)).html, `${page}/draft`)
  const again = await signedIn(service, { team: team.id, role: 'editor', email: editor.email })
  const sent = await again.post(`${page}/draft`, { ...form, html: 'Typed for an hour' })
  t.equal(sent.status, 403)
  const kept = formTo(sent.html, `${page}/draft`)
  t.match(kept, { html: ['Typed for an hour'] })
  t.equal((await again.post(`${page}/draft`, kept)).status, 303)
})
