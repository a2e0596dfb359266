/** Bulk actions on emails and webhooks only change items that matched when they were counted. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { acceptEmails } from '../../../db/messages/emails/accept.ts'
import { idNow } from '../../../db/process/ids.ts'
import { formsTo, shows, signedIn } from '../../support/dashboard.ts'
import { openPool } from '../../support/pool.ts'
import { sendEmail, world } from '../../support/service.ts'
import { anItem } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'
import { happen } from '../../support/webhooks.ts'

const { service, database, deps, team } = await world(t)
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const list = `/teams/${team.id}/emails`

/** Sends emails with a tag, one for each status. */
async function emails(tag: string, ...statuses: ('queued' | 'sent')[]): Promise<string[]> {
  const ids: string[] = []
  for (const status of statuses) {
    const id = await sendEmail(service, team, { tags: [tag] })
    if (status !== 'queued') await happen(service, { team_id: team.id, email_id: id, kind: status })
    ids.push(id)
  }
  return ids
}
const become = (kind: 'sent' | 'delivered', ...ids: (string | undefined)[]) =>
  Promise.all(ids.map((email_id = '') => happen(service, { team_id: team.id, email_id, kind })))
const left = async (ids: readonly string[]) =>
  (await Promise.all(ids.map((id) => owner.get(`${list}/${id}`)))).map(({ status }) => status)

t.test("emails that match after the count don't change", async (t) => {
  const ids = await emails('moving', 'sent', 'queued', 'sent', 'queued', 'sent')
  const page = await owner.get(`${list}/all?tag=moving&status=sent`)
  shows(t, page, /Delete 3 emails/)
  const [form = {}] = formsTo(page, `${list}/all/delete`)
  await become('sent', ids[1], ids[3])
  await become('delivered', ids[4])
  await owner.post(`${list}/all/delete`, form)
  shows(t, await owner.get(list), '2 emails deleted.')
  t.strictSame(await left(ids), [404, 200, 404, 200, 200])
  const waiting = await emails('waiting', 'queued', 'sent')
  const queued = await owner.get(`${list}/all?tag=waiting&status=queued`)
  const [asked = {}] = formsTo(queued, `${list}/all/requeue`)
  await database.query(sql.unsafe`
    update email_states set status = 'queued', provider_message_id = null where id = ${waiting[1] ?? ''}`)
  await owner.post(`${list}/all/requeue`, asked)
  shows(t, await owner.get(list), '1 email queued to be sent again.')
})

t.test('failed emails are sent again or deleted without waiting ones', async (t) => {
  const [first = '', later = '', last = '', waiting = ''] = await emails(
    'failing',
    ...(['queued', 'queued', 'queued', 'queued'] as const),
  )
  const fail = (id: string) =>
    database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      values (${team.id}, ${id}, uuid_send(gen_random_uuid()), 'gave_up', now(), '')`)
  for (const id of [first, last]) await fail(id)
  const all = `${list}/all?kind=all&tag=failing&status=failed`
  const page = await owner.get(all)
  shows(t, page, /Tag: failing, Status: failed\. .*Failed 2 can be sent again .*Send 2 failed emails again/)
  const [form = {}] = formsTo(page, `${list}/all/requeue`)
  shows(t, await owner.ask(`${list}/all/requeue`, form), 'Send 2 failed emails again?')
  await fail(later)
  await owner.post(`${list}/all/requeue`, form)
  shows(t, await owner.get(list), '2 emails queued to be sent again.')
  const [remove = {}] = formsTo(await owner.get(all), `${list}/all/delete`)
  await owner.post(`${list}/all/delete`, remove)
  shows(t, await owner.get(list), '1 email deleted.')
  t.strictSame(await left([first, later, last, waiting]), [200, 404, 200, 200])
  const jobs = await database.anyFirst(sql.type(object({ kind: string().defined() }))`
    select kind from background_jobs where team_id = ${team.id} order by id desc limit 2`)
  t.strictSame(jobs, ['email.delete_apart', 'email.requeue_apart'], 'left alone by version 0.1.0')
})

t.test("an email being accepted during the count isn't included", async (t) => {
  const [first = ''] = await emails('late', 'queued')
  let form: Record<string, string> = {}
  let late = ''
  // Uses its own connection, because the page is requested during this transaction.
  const others = await openPool(t, service.url, { size: 1 })
  await others.transaction(async (tx) => {
    const items = [
      anItem({ tags: ['late'], from: { name: null, address: 'a@example.com', domain: 'example.com' } }),
    ]
    const [outcome] = await acceptEmails({ ...deps, tx }, { team_id: team.id, domain: null }, items)
    late = outcome?.kind === 'stored' ? outcome.row.id : ''
    const page = await owner.get(`${list}/all?tag=late`)
    shows(t, page, 'Delete 1 email')
    ;[form = {}] = formsTo(page, `${list}/all/delete`)
  })
  const newest = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
  await owner.post(`${list}/all/delete`, { ...form, newest, total: '100' })
  t.strictSame(await left([first, late]), [404, 200], 'whatever else the form says')
})

t.test('a replay sends at most the confirmed number of webhooks', async (t) => {
  const endpoint = idNow()
  await database.query(sql.unsafe`
    insert into webhook_endpoints (team_id, id, url, name, types, state, secret, created_at)
    values (${team.id}, ${endpoint}, 'https://example.com/', 'Billing', '{*}', 'enabled', '', now())`)
  const store = async (status: string, count: number) => {
    const ids = sql.array(Array.from({ length: count }, idNow), 'uuid')
    await database.query(sql.unsafe`
      insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
      select ${team.id}, id, ${endpoint}, gen_random_uuid(), 'email.sent', '{}', ${status}, now() from unnest(${ids}) id`)
  }
  const end = (status: string) =>
    database.query(sql.unsafe`
      update webhook_messages set status = ${status} where endpoint_id = ${endpoint} and status = 'queued'`)
  const home = `/teams/${team.id}/webhooks/${endpoint}`
  const ask = async (what: string) => {
    const page = await owner.ask(`${home}/replay`, { what })
    return { page, form: formsTo(page, `${home}/replay`)[0] ?? {} }
  }
  await store('queued', 3)
  const none = await ask('failed')
  t.match(none.page, { status: 303, location: home })
  shows(
    t,
    await owner.get(home),
    /Nothing to send again\. No event matches “failed”\. Events that wait for their next attempt: 3\./,
  )
  await store('failed', 2)
  const { page, form } = await ask('failed')
  shows(t, page, /Send 2 webhook events to Billing again\? Status: failed\./)
  shows(t, await owner.get(`${home}/messages?status=failed`), /failed .* failed/)
  await end('failed')
  await owner.post(`${home}/replay`, form)
  shows(t, await owner.get(home), '2 webhook events queued to be sent again.')
  await owner.post(`${home}/replay`, form)
  const unchanged = await owner.get(home)
  shows(t, unchanged, 'Nothing was sent again, because these events have changed since they were counted.')
  const all = await ask('failed')
  shows(t, all.page, 'Send 3 webhook events to Billing again?')
  const refused = await owner.post(`${home}/replay`, { what: 'failed', confirmed: 'yes' })
  t.equal(refused.status, 400, 'a press that says not what was counted does nothing')
})

t.test('a new webhook gets the checked types, or all', async (t) => {
  const home = `/teams/${team.id}/webhooks`
  t.notMatch((await owner.get(home)).html, /name="types"[^>]* checked/)
  const url = 'https://93.184.215.14/'
  const both = await owner.post(home, { url, types: ['*', 'email.bounced'] })
  t.equal(both.status, 400)
  shows(t, both, 'Events must be either * or a list of event types, not both.')
  const none = await owner.post(home, { url })
  t.equal(none.status, 400)
  const made = await owner.post(home, { url, types: ['email.bounced', 'email.failed'] })
  shows(t, await owner.get(made.location ?? ''), 'Events email.bounced, email.failed')
  const list = await owner.get(home)
  shows(t, list, ' enabled 2 types ')
  t.match(list.html, 'title="email.bounced, email.failed"')
})
