/** Background jobs: started on a page, continued by workers, with nothing lost or repeated if one dies. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { latestBackgroundJobs } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { continueBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { acceptEmails } from '../../../db/messages/emails/accept.ts'
import { countEmails } from '../../../db/messages/emails/bulk.ts'
import { requeueStale } from '../../../workers/jobs/requeue-stale.ts'
import { runClock, shiftClock } from '../../support/clock.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { loseJobs } from '../../support/reports.ts'
import { world } from '../../support/service.ts'
import { anItem } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, cli, database, deps, team } = await world(t, { team: { plan: 'pro', domain: 'demo.test' } })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const list = `/teams/${team.id}/emails`

/** Stores emails and clicks the button for an action on all of them. */
async function press(verb: 'requeue' | 'delete', tag: string, emails: number) {
  const items = Array.from({ length: emails }, () => anItem({ tags: [tag] }))
  await database.transaction((tx) => acceptEmails({ ...deps, tx }, { team_id: team.id, domain: null }, items))
  const at = { tx: database, now: new Date(), since: new Date(0) }
  const { between, count, seen } = await countEmails(at, team.id, { filter: { tag }, most: 10_000 })
  t.equal(count, emails)
  return owner.post(`${list}/all/${verb}`, {
    tag,
    newest: between?.newest ?? '',
    oldest: between?.oldest ?? '',
    total: String(count),
    seen,
  })
}

const linesOf = async (action: string) =>
  (await auditEntries(database, { team: team.id, limit: 50 })).filter((line) => line.action === action)
const jobNow = async () => (await latestBackgroundJobs(database, team.id, 1))[0]

t.test('a large action shows progress, and is audited once', async (t) => {
  const pressed = await press('delete', 'many', 1_101)
  const job = await jobNow()
  t.equal(pressed.location, `/teams/${team.id}/background-jobs/${job?.id}`)
  shows(t, await owner.get(pressed.location ?? ''), 'Checked 500')
  t.strictSame(await linesOf('email.delete'), [])
  const worker = await startWorker(t, service)
  await until('it is over', async () => (await jobNow())?.finished_at !== null)
  await worker.stop()
  shows(t, await owner.get(pressed.location ?? ''), /done 1,101 emails deleted\. .*Checked 1,101 /)
  const list = await owner.get(`/teams/${team.id}/background-jobs`)
  shows(t, list, /Delete emails .*done 1,101 of 1,101 1,101 emails deleted\./)
  const lines = await linesOf('email.delete')
  t.match(lines, [{ actor: owner.email, subject: '1,101 emails', detail: 'tag=many' }])
  t.equal(lines.length, 1)
})

t.test("a dead worker's job resumes after the sweep", async (t) => {
  await press('requeue', 'swept', 1_001)
  const id = (await jobNow())?.id ?? ''
  const died = continueBackgroundJob(deps, id, async () => {
    throw new Error('killed')
  })
  await t.rejects(died, /killed/)
  t.match(await jobNow(), { done: 500, total: 1_001, finished_at: null }, 'only what was committed counts')
  await loseJobs(service, [id])
  await shiftClock(database, 3_600)
  await requeueStale(deps as unknown as Parameters<typeof requeueStale>[0])
  await runClock(database)
  const worker = await startWorker(t, service)
  await until('it is over', async () => (await jobNow())?.finished_at !== null)
  await worker.stop()
  t.match(await jobNow(), { done: 1_001, result: { changed: 1_001 } })
  t.match(await linesOf('email.requeue'), [{ subject: '1,001 emails' }])
})

t.test('jobs with unknown input are left to newer workers', async (t) => {
  await press('delete', 'newer', 501)
  const before = await jobNow()
  await database.query(sql.unsafe`
    update background_jobs set given = (given::jsonb || '{"most": "all"}')::json where id = ${before?.id ?? ''}`)
  const remaining: string[] = []
  await continueBackgroundJob(deps, before?.id ?? '', async (_tx, which) => void remaining.push(which))
  t.strictSame(remaining, ['to_newer'])
  t.strictSame(await jobNow(), before)
  await database.query(sql.unsafe`delete from background_jobs where id = ${before?.id ?? ''}`)
})

t.test('an erasure names its contact in no job or log', async (t) => {
  const address = 'eve.erased@example.org'
  const { call } = service
  t.equal((await call('POST', '/v1/contacts', { key: team.key, body: { email: address } })).status, 201)
  const items = Array.from({ length: 3 }, () => anItem({ to: [address] }))
  await database.transaction((tx) => acceptEmails({ ...deps, tx }, { team_id: team.id, domain: null }, items))
  const path = `/teams/${team.id}/contacts/${address}`
  t.equal((await editor.post(`${path}/erase`)).status, 403)
  const pressed = await owner.post(`${path}/erase`)
  t.equal(pressed.status, 303)
  const id = (await jobNow())?.id ?? ''
  t.match(pressed.headers.get('location'), new RegExp(`/background-jobs/${id}$`))
  const worker = await startWorker(t, service)
  await until('it is over', async () => (await jobNow())?.finished_at !== null)
  await worker.stop()
  t.match(await jobNow(), { fault: null, result: { contact: true, waiting_emails_deleted: 3 } })
  t.match(await linesOf('contact.erase'), [{ subject: /^[0-9a-f]{64}$/, actor: owner.email }])
  t.equal((await call('GET', `/v1/contacts/${address}`, { key: team.key })).status, 404)
  const left = await database.oneFirst(sql.type(object({ text: string().defined() }))`
    select coalesce(string_agg(j::text, ''), '') as text from background_jobs j`)
  t.notMatch(left, /eve\.erased/)
  shows(t, await owner.get(`/teams/${team.id}/background-jobs`), 'Erase personal data')
})

t.test('the CLI lists and shows background jobs', async (t) => {
  const [latest] = await cli.json(['job', 'list', '--team', team.id])
  t.match(latest, { kind: 'contact.erase', begun_by: owner.email, fault: null })
  t.strictSame(await cli.json(['job', 'show', latest.id]), latest)
  t.match(await cli.fault(['job', 'show', team.id]), /No such background job\./)
  t.match(await cli.fault(['job', 'stop', latest.id]), /was not stopped/)
})
