/** Bulk actions on matching or selected emails. bulk.test.ts tests changes after the count. */
import { sql } from 'slonik'
import { recordBounce } from '../../support/bounce.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { formsTo, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { jobStates, usedBy } from '../../support/rows.ts'
import { makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, database, team, send, lastEntry } = await world(t)
const other = await makeTeam(service, { domain: 'example.net' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const list = `/teams/${team.id}/emails`

/** Prepares a click on a button for all matching emails, as the page has it now. */
async function pressAll(person: typeof owner, verb: string, query: string, form = {}) {
  const { html } = await person.get(`${list}/all?${query}`)
  const drawn = new RegExp(`<form[^>]*/all/${verb}["?][\\s\\S]*?</form>`).exec(html)?.[0] ?? ''
  const fields = [...drawn.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, ...pair]) => pair)
  const sent = { ...Object.fromEntries(fields), ...form }
  return async () => person.post(`${list}/all/${verb}`, sent)
}

t.test('a bulk action changes exactly the emails that were counted', async (t) => {
  const ids = await Promise.all(['one', 'two', 'three'].map((subject) => send({ subject, tags: ['bulk'] })))
  const kept = await send({ subject: 'kept' })
  shows(t, await editor.get(`${list}/all?tag=bulk`), 'Bulk actions on 3 emails')
  shows(t, await editor.get(`${list}/all?tag=none`), /Bulk actions on 0 emails Tag: none\. No emails match/)
  const requeued = await (await pressAll(editor, 'requeue', 'tag=bulk', { confirmed: 'yes' }))()
  t.match(requeued, { status: 303, location: `${list}?tag=bulk` })
  shows(t, await editor.get(list), '3 emails queued to be sent again.')
  for (const id of ids) t.strictSame(await jobStates(service, id), ['created'])
  t.equal((await owner.post(`${list}/all/delete`, { tag: 'bulk' })).status, 400, 'not without what was shown')
  const press = await pressAll(owner, 'delete', 'tag=bulk', { confirmed: 'yes' })
  const later = await send({ subject: 'arrived after the page was shown', tags: ['bulk'] })
  const before = (await usedBy(service, team.id)).emails
  await press()
  t.equal((await usedBy(service, team.id)).emails, before - 3)
  t.equal((await owner.get(`${list}/${ids[0]}`)).status, 404)
  t.equal((await owner.get(`${list}/${kept}`)).status, 200)
  t.equal((await owner.get(`${list}/${later}`)).status, 200)
  const deleted = { action: 'email.delete', subject: '3 emails', detail: 'tag=bulk' }
  t.match(await lastEntry(), { actor: owner.email, ...deleted })
})

t.test("the question leaves out emails that can't be sent because of suppressions", async (t) => {
  const to = 'quiet@example.org'
  await database.query(sql.unsafe`
    update teams set suppress_transactional = 'bounces_and_complaints' where id = ${team.id}`)
  await owner.post(`/teams/${team.id}/suppressions`, { email: to, as: 'complained', reason: 'they asked' })
  const stopped = await send({ to: [to], tags: ['quiet'] })
  const open = await send({ tags: ['quiet', 'heard'] })
  const ask = (...ids: string[]) => editor.ask(`${list}/requeue`, { ids })
  const refused = await ask(stopped)
  t.equal(refused.status, 409)
  shows(t, refused, 'None of these emails can be sent again. Some would only go to suppressed addresses.')
  const forced = await ask(stopped, open)
  shows(t, forced, /Send 1 email again\? 1 email can’t be sent again: all recipients are suppressed/)
  const page = await editor.get(`${list}/all?tag=quiet`)
  shows(
    t,
    page,
    /Waiting 1 can be sent again .*To suppressed addresses 1 left out .*Send 1 queued email again/,
  )
  const one = await editor.get(`${list}/all?tag=quiet&recipient=${to}`)
  shows(t, one, /None of them can be sent again\. 1 email would go only to suppressed addresses/)
  t.strictSame(formsTo(one, `${list}/all/requeue`), [])
  await database.query(sql.unsafe`update teams set suppress_transactional = default where id = ${team.id}`)
})

t.test('a question shows that nothing is left to confirm', async (t) => {
  const one = await send({ tags: ['left'], scheduled_at: new Date(Date.now() + 3_600_000).toISOString() })
  const two = await send({ tags: ['left'] })
  const gone = await send({ tags: ['left'] })
  const bounce = { recipient: 'someone@example.org', detail: '550 5.7.1 blocked', effect: 'none' } as const
  await recordBounce(service, { team_id: team.id, email_id: two }, bounce)
  const requeue = `${list}/${two}/requeue`
  const all = await owner.get(`${list}/all?tag=left`)
  const [fields = {}] = formsTo(all, `${list}/all/delete`)
  const [again = {}] = formsTo(all, `${list}/all/requeue`)
  const questions: [path: string, form: Record<string, string | string[]>][] = [
    [`${list}/${one}/cancel`, {}],
    [requeue, formTo((await owner.get(`${list}/${two}`)).html, requeue)],
    [`${list}/${gone}/delete`, {}],
    [`${list}/delete`, { ids: [two, gone] }],
    [`${list}/requeue`, { ids: [two, gone] }],
    [`${list}/all/delete`, fields],
    [`${list}/all/requeue`, again],
  ]
  const asked: string[] = []
  for (const [path, form] of questions) {
    const { location, status } = await owner.post(path, { ...form, confirmed: '' })
    t.equal(status, 303, path)
    t.notMatch(textOf((await owner.get(location ?? '')).html), 'Nothing left to confirm', path)
    asked.push(location ?? '')
  }
  shows(
    t,
    await owner.get(asked[5] ?? ''),
    /Delete .* permanently\? With their timelines\. You can’t undo this\./,
  )
  await owner.press(`${list}/${two}`, requeue)
  shows(t, await owner.get(asked[1] ?? ''), /Nothing left to confirm The email has changed/)
  await owner.press(`${list}/${one}`, `${list}/${one}/requeue`)
  shows(t, await owner.get(asked[0] ?? ''), /Nothing left to confirm This message can no longer be cancelled/)
  await owner.post(`${list}/delete`, { ids: [one, two, gone] })
  for (const question of asked) shows(t, await owner.get(question), 'Nothing left to confirm')
})

t.test('rejected emails are only requeued in bulk if checked', async (t) => {
  const id = await send({ to: ['blocked@example.org'], tags: ['outright'] })
  // A rejection without suppression, because suppressed recipients are left out.
  const bounce = { recipient: 'blocked@example.org', detail: '550 5.7.1 blocked', effect: 'none' } as const
  await recordBounce(service, { team_id: team.id, email_id: id }, bounce)
  const question = async (form: Record<string, string> = {}) => {
    const [fields = {}] = formsTo(await editor.get(`${list}/all?tag=outright`), `${list}/all/requeue`)
    return editor.ask(`${list}/all/requeue`, { ...fields, ...form })
  }
  shows(t, await editor.get(`${list}/all?tag=outright`), 'Send 1 rejected email again')
  shows(t, await question(), 'Send 1 rejected email again?')
  await send({ tags: ['outright'] })
  const press = async (form: Record<string, string>) => {
    await (await pressAll(editor, 'requeue', 'tag=outright', { confirmed: 'yes', ...form }))()
    return editor.get(list)
  }
  shows(
    t,
    await editor.get(`${list}/all?tag=outright`),
    /expired emails, and emails that a provider has accepted aren’t sent again\. .*1 queued email 1 queued email, and 1 email rejected by a server/,
  )
  shows(t, await question(), 'Send 1 queued email again?')
  shows(t, await question({ force: 'refused' }), 'Send 1 queued email and 1 rejected one again?')
  t.equal((await question({ waiting: 'many' })).status, 400)
  shows(t, await press({}), '1 email queued to be sent again.')
  shows(t, await press({ force: 'refused' }), '2 emails queued to be sent again.')
})

t.test('a bulk requeue shows an incomplete count as a minimum', async (t) => {
  await send({ tags: ['slow'] })
  const [fields = {}] = formsTo(await editor.get(`${list}/all?tag=slow`), `${list}/all/requeue`)
  const question = (waiting: number, form: Record<string, string> = {}) =>
    editor.ask(`${list}/all/requeue`, {
      ...{ ...fields, waiting: String(waiting), rejected: '0', timed_out: 'yes' },
      ...form,
    })
  shows(t, await question(3), 'Send at least 3 queued emails again?')
  shows(t, await question(0), 'Send the queued emails again?')
  shows(t, await question(0, { force: 'refused' }), 'Send the queued emails and the rejected ones again?')
})

t.test('bulk actions say beforehand that nothing can be sent again', async (t) => {
  const id = await send({ tags: ['accepted'] })
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'x' where id = ${id}`)
  await send({ tags: ['accepted'], scheduled_at: new Date(Date.now() + 3_600_000).toISOString() })
  const page = await owner.get(`${list}/all?tag=accepted`)
  shows(
    t,
    page,
    /Bulk actions on 2 emails .*None of them can be sent again\. .* are scheduled, or have expired/,
  )
  t.strictSame(formsTo(page, `${list}/all/requeue`), [])
  t.equal(formsTo(page, `${list}/all/delete`).length, 1)
  t.match(page.html, /class="lead"[^>]*>None of them can be sent again\./, 'the page starts with it')
  t.notMatch(page.html, /Accepted, scheduled or expired|<h2>Send again/)
  shows(t, page, /have expired\. You can only delete them\./)
  t.match(page.html, /<a class="button quiet" href="[^"]*\/emails\?tag&#x3D;accepted">Show the emails/)
  t.notMatch(page.html, 'id="more"', 'the only action is a button')
  const lead = 'Emails that match later aren’t included'
  const seen = await editor.get(`${list}/all?tag=accepted`)
  for (const { html } of [page, seen]) t.notMatch(html, lead, 'nothing can be sent')
  t.notMatch(seen.html, /You can only delete/, 'an editor has no action here')
})

t.test('sends selected emails again, or deletes them', async (t) => {
  const [waiting = '', sent = '', left = ''] = await Promise.all(
    ['a', 'b', 'c'].map((tag) => send({ tags: [tag] })),
  )
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'y' where id = ${sent}`)
  const ids = [waiting, sent]
  const at = (verb: string): string => `${list}/${verb}?tag=a`
  t.match((await editor.get(list)).html, `name="ids" value="${waiting}"`)
  t.match((await editor.get(list)).html, /aria-label="Select [^",]+@[^",]+, [^"]+"/, 'recipient and subject')
  t.notMatch((await viewer.get(list)).html, /name="ids"/)
  shows(
    t,
    await editor.ask(at('requeue'), { ids }),
    /Send 1 email again\? 1 email can’t be sent again: accepted by a provider, scheduled or expired/,
  )
  t.match(await editor.post(at('requeue'), { ids }), { status: 303, location: `${list}?tag=a` })
  shows(t, await editor.get(list), '1 email queued to be sent again. 1 other can’t be sent again.')
  t.equal((await owner.post(at('delete'))).status, 400, 'without a selection')
  await owner.post(at('delete'), { ids })
  shows(t, await owner.get(list), '2 emails deleted.')
  for (const id of ids) t.equal((await owner.get(`${list}/${id}`)).status, 404)
  t.equal((await owner.get(`${list}/${left}`)).status, 200)
  const entry = await lastEntry()
  t.match(entry, { action: 'email.delete', subject: '2 emails' })
  for (const id of ids) t.match(entry?.detail, id)
  const theirs = await signedIn(service, { team: other.id, role: 'owner' })
  await theirs.post(`/teams/${other.id}/emails/requeue`, { ids: left })
  shows(t, await theirs.get(`/teams/${other.id}/emails`), '0 emails queued to be sent again.')
  await theirs.post(`/teams/${other.id}/emails/delete`, { ids: left })
  t.equal((await owner.get(`${list}/${left}`)).status, 200, 'another team’s email stays')
})

t.test('selected emails to suppressed addresses are not sent again', async (t) => {
  const bounced = await send({ to: ['dead@example.org'] })
  await recordBounce(service, { team_id: team.id, email_id: bounced }, { recipient: 'dead@example.org' })
  const id = await send({ to: ['dead@example.org'] })
  await editor.post(`${list}/requeue`, { ids: id })
  shows(t, await editor.get(list), '0 emails queued to be sent again. 1 other can’t be sent again.')
})

t.test('lists leave out emails of broadcasts by default', async (t) => {
  const { emails } = await aBroadcast(service, team)
  const [id = ''] = await emails('kim@example.net')
  const single = await send({ to: ['kim@example.net'], subject: 'Only for Kim' })
  const found = async (query: string): Promise<boolean[]> => {
    const { html } = await viewer.get(`${list}?${query}`)
    return [single, id].map((each) => html.includes(`${list}/${each}`))
  }
  t.strictSame(await found(''), [true, false])
  t.strictSame(await found('recipient=kim@example.net'), [true, false])
  t.strictSame(await found('kind=broadcasts'), [false, true])
  t.strictSame(await found('kind=all'), [true, true])
  t.strictSame(await found(`id=${id}`), [false, true], 'who names an email means it')
  t.equal((await viewer.get(`${list}?kind=other`)).status, 400)
  shows(t, await editor.get(`${list}/all?q=kim@example.net`), 'Bulk actions on 1 email')
  const requeued = await (await pressAll(editor, 'requeue', 'q=kim@example.net', { confirmed: 'yes' }))()
  t.equal(requeued.status, 303)
  shows(t, await editor.get(list), '1 email queued to be sent again.')
  const kind = await database.oneFirst(sql.unsafe`
    select kind from background_jobs where team_id = ${team.id} order by begun_at desc limit 1`)
  t.equal(kind, 'email.requeue_apart', 'workers of version 0.1.0 leave it alone')
  t.match(await lastEntry(), { action: 'email.requeue', subject: '1 email' })
})

t.test("cancelling a question, or an error, keeps the list's filter", async (t) => {
  const id = await send({ tags: ['asked'], subject: 'Asked about' })
  const [page, action] = [`${list}/all?tag=asked`, `${list}/all/delete`]
  const [drawn = ''] =
    new RegExp(`action="/dashboard${action}[^"]*"`).exec((await owner.get(page)).html) ?? []
  const to = drawn.slice('action="/dashboard'.length, -1).replaceAll('&#x3D;', '=')
  const [form = {}] = formsTo(await owner.get(page), action)
  const asked = await owner.ask(to, form)
  t.match(asked.html, `href="/dashboard${list}/all?tag&#x3D;asked">Go back</a>`)
  const refused = await owner.post(to, { ...form, total: '', confirmed: 'yes' })
  t.equal(refused.status, 400)
  shows(t, refused, /Bulk actions on 1 email Tag: asked\. /)
  const opened = `${list}/${id}?list=tag%3Dasked`
  const one = await owner.ask(`${list}/${id}/delete?list=tag%3Dasked`)
  t.match(one.html, `href="/dashboard${opened.replaceAll('=', '&#x3D;')}">Go back</a>`)
})
