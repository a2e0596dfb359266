/** Progress, rate and remaining time of background jobs. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { entryLabel } from '../../../api/dashboard/components/action-labels.ts'
import { findJobTexts } from '../../../api/dashboard/pages/background-job.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { backgroundJobById } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { continueBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { KINDS } from '../../../db/maintenance/background-jobs/kinds.ts'
import { idRow } from '../../../db/postgres/rows.ts'
import { type Seen, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, database, deps, team } = await world(t)
const operator = await signedIn(service, { operator: true })
const editor = await signedIn(service, { team: team.id, role: 'editor' })

/** Inserts a job that started some time ago. @returns its ID. */
const aBackgroundJob = (minutes: number, done: number, total: number | null, over = false) =>
  service.database.oneFirst(sql.type(idRow)`
    insert into background_jobs (id, team_id, kind, done, total, begun_by, begun_at, progressed_at, finished_at)
    values (${uuidv7()}, ${team.id}, 'email.requeue', ${done}, ${total}, 'ana@example.com',
      now() - make_interval(secs => ${minutes * 60}), now(), case when ${over} then now() end) returning id`)

t.test('a job has the same name as its audit entry', (t) => {
  const object = (words: string): string => words.replace(/^\S+ /, '')
  const kinds = Object.entries(KINDS).filter(([kind]) => kind !== 'suppression.judge')
  for (const [kind, own] of kinds) {
    const action = 'action' in own ? (own.action ?? kind) : kind
    t.equal(object(entryLabel({ action, detail: '' }, undefined)), object(findJobTexts({ kind }).title), kind)
  }
  t.end()
})

t.test('a running job shows its rate and remaining time', async (t) => {
  // Started long ago, so that the duration of the test doesn't change the rate.
  const id = await aBackgroundJob(2_000, 1_200_000, 1_206_000)
  shows(
    t,
    await editor.get(`/teams/${team.id}/background-jobs/${id}`),
    /Each email that can be sent again is queued when it is checked\. Workers do this .*1,200,000 of 1,206,000 About 600 emails a minute, done in about 10 minutes/,
  )
  const { html } = await editor.get(`/teams/${team.id}/background-jobs/${id}`)
  t.match(html, /<li class="busy">[^~]*<svg class="bar"[^>]*><rect width="100"/, 'in the color of the list')
  const list = await editor.get(`/teams/${team.id}/background-jobs`)
  shows(t, list, /1,200,000 of 1,206,000, 10 minutes left \d/)
  t.notMatch(textOf(list.html), /a minute|emails queued/, 'only finished jobs have a result')
  shows(t, list, /Job Status Progress Started Send emails again by ana@example\.com running 1,200,000 of/)
})

t.test('a running job without progress has no remaining time', async (t) => {
  const id = await aBackgroundJob(60, 1_200, 6_000)
  const progressed = (minutes: number) =>
    database.query(sql.unsafe`
      update background_jobs set progressed_at = now() - make_interval(mins => ${minutes}) where id = ${id}`)
  const list = `/teams/${team.id}/background-jobs`
  await progressed(50)
  shows(t, await editor.get(`${list}/${id}`), /1,200 of 6,000 No progress for 50 minutes/)
  shows(t, await editor.get(list), /1,200 of 6,000, no progress for 50 minutes/)
  await progressed(1)
  shows(t, await editor.get(`${list}/${id}`), /About 20 emails a minute, done in about 4 hours/)
  await database.query(sql.unsafe`delete from background_jobs where id = ${id}`)
})

t.test('shows no remaining time at the start, without a total, or at the end', async (t) => {
  for (const id of [
    await aBackgroundJob(0, 100, 7_000),
    await aBackgroundJob(3, 100, null),
    await aBackgroundJob(3, 7_000, 7_000, true),
  ])
    t.notMatch(textOf((await editor.get(`/teams/${team.id}/background-jobs/${id}`)).html), /a minute|done in/)
})

/** Inserts a running job. @returns its ID. */
const aRunningJob = (kind = 'email.delete', teamId: string | null = team.id): Promise<string> =>
  database.oneFirst(sql.type(idRow)`
    insert into background_jobs (id, team_id, kind, given, cursor, done, total, result, begun_by, begun_at, progressed_at)
    values (${uuidv7()}, ${teamId}, ${kind}, '{"words": "tag=x"}', '{}', 500, 1200, '{"changed": 400}',
      'ana@example.com', now(), now()) returning id`)

t.test('a running job shows which emails it changes', async (t) => {
  const made = await editor.post(`/teams/${team.id}/templates`, {
    name: 'Spring',
    html: '<p>Hi</p>',
    text: '',
  })
  const template = made.location?.split('/').at(-1) ?? ''
  const list = `/teams/${team.id}/background-jobs`
  for (const [given, shown] of [
    [{ query: '' }, 'All single emails'],
    [{ query: '', force: true }, 'All single emails, including rejected emails'],
    [{ query: `status=failed&template=${template}` }, 'Emails (Status: failed, Template: Spring)'],
    [
      { query: 'kind=broadcasts', force: true },
      'Emails (Kind of email: Of broadcasts), including rejected emails',
    ],
    [{ words: 'since 2026-11-01' }, 'Since 2026-11-01'],
  ] as const) {
    const id = await aRunningJob('email.requeue')
    await database.query(sql.unsafe`
      update background_jobs set given = ${JSON.stringify(given)}::json where id = ${id}`)
    shows(t, await editor.get(list), `Send emails again ${shown} · by ana@example.com running`)
    shows(t, await editor.get(`${list}/${id}`), `Search ${shown} Started by`)
    t.notMatch(textOf((await operator.get('/operator/background-jobs')).html), 'Spring', 'of one team')
    await database.query(sql.unsafe`delete from background_jobs where id = ${id}`)
  }
})

const hasStop = ({ html }: Seen): boolean => /action="[^"]*\/stop"/.test(html)

t.test('an editor stops a job, whose changes stay', async (t) => {
  const id = await aRunningJob()
  const page = `/teams/${team.id}/background-jobs/${id}`
  t.ok(hasStop(await editor.get(page)))
  const asked = await editor.ask(`${page}/stop`)
  shows(t, asked, /Done: 500 of 1,200/)
  t.equal((await editor.press(page, `${page}/stop`)).status, 303)
  const shown = await editor.get(page)
  shows(t, shown, new RegExp(`stopped .*Stopped by ${editor.email}\\. 400 emails deleted\\.`))
  t.notOk(hasStop(shown))
  t.match(await backgroundJobById(database, team.id, id), {
    done: 500,
    fault: null,
    result: { changed: 400 },
  })
  const remaining: string[] = []
  await continueBackgroundJob(deps, id, async (_tx, which) => void remaining.push(which))
  t.strictSame(remaining, ['nothing'], 'a worker does nothing more')
  t.match(await auditEntries(database, { team: team.id, limit: 1 }), [
    { action: 'job.stop', subject: 'email.delete', detail: '500 of 1200', actor: editor.email },
  ])
  t.equal((await editor.post(`${page}/stop`)).status, 303, 'a repeated click changes nothing')
  shows(t, await editor.get(page), 'The job wasn’t stopped. It has finished')
  const jobs = await editor.get(`/teams/${team.id}/background-jobs`)
  shows(t, jobs, /Delete emails .*stopped 500 of 1,200 Stopped by/)
})

t.test("a page tells why a job can't be stopped", async (t) => {
  for (const [kind, reason] of [
    ['contact.import', 'An import can’t be stopped'],
    ['contact.erase', 'An erasure can’t be stopped'],
  ] as const) {
    const id = await aRunningJob(kind)
    const page = `/teams/${team.id}/background-jobs/${id}`
    const shown = await editor.get(page)
    shows(t, shown, reason)
    t.notMatch(textOf(shown.html), 'Show import', 'the import no longer exists')
    t.notOk(hasStop(shown))
    await editor.post(`${page}/stop`)
    t.match(await backgroundJobById(database, team.id, id), { finished_at: null })
  }
})

t.test('an import is called like its file', async (t) => {
  const id = await aRunningJob('contact.import')
  await database.query(sql.unsafe`
    insert into contact_imports (team_id, id, file_name, records, created_by, created_at, draft, mapping, encoding)
    values (${team.id}, ${id}, 'spring.csv', 1200, 'ana@example.com', now(), false, '{}', 'UTF-8')`)
  const path = 'background-jobs'
  shows(t, await editor.get(`/teams/${team.id}/${path}`), 'spring.csv Import contacts · by ana@example.com')
  const shown = await editor.get(`/teams/${team.id}/${path}/${id}`)
  const page = `/teams/${team.id}/contacts/imports/${id}`
  t.match(shown, { status: 303, location: page }, 'which also has the result')
  shows(
    t,
    await editor.get(page),
    /← Import contacts spring\.csv running Workers do this .* you can leave the page\. An import can’t be stopped.* Started by ana@example\.com Started .* ID /,
  )
  shows(t, await operator.get(`/operator/${path}`), 'spring.csv Import contacts · by ana@example.com')
  shows(t, await operator.get(`/operator/${path}/${id}`), /spring\.csv running .*Job Import contacts /)
})

t.test("jobs of another team can't be stopped", async (t) => {
  const other = await makeTeam(service, { domain: 'other-jobs.test' })
  const id = await aRunningJob('email.delete', other.id)
  t.equal((await editor.post(`/teams/${team.id}/background-jobs/${id}/stop`)).status, 404)
  t.equal((await editor.post(`/teams/${other.id}/background-jobs/${id}/stop`)).status, 404)
  const viewer = await signedIn(service, { team: other.id, role: 'viewer' })
  t.equal((await viewer.post(`/teams/${other.id}/background-jobs/${id}/stop`)).status, 403)
  t.match(await backgroundJobById(database, null, id), { finished_at: null })
})

t.test('operators see the teams of jobs, and stop them', async (t) => {
  const other = await makeTeam(service, { domain: 'jobs-of-others.test' })
  await database.query(sql.unsafe`update teams set name = 'Rye & Sons' where id = ${other.id}`)
  const id = await aRunningJob('email.delete', other.id)
  const redrive = await aRunningJob('queue.redrive', null)
  const list = await operator.get('/operator/background-jobs')
  shows(t, list, /Delete emails by ana@example\.com running Rye & Sons /)
  shows(t, list, /Retry failed jobs by ana@example\.com running all teams /)
  t.match(list.html, `href="/dashboard/operator/teams/${other.id}"`)
  const page = `/operator/background-jobs/${id}`
  shows(t, await operator.get(page), /Team Rye & Sons /)
  await operator.press(page, `${page}/stop`)
  shows(t, await operator.get(page), /Stopped by .* 400 emails deleted\./)
  const own = `/operator/background-jobs/${redrive}`
  t.match((await operator.get(own)).html, 'href="/dashboard/operator/queues"')
})

t.test('a finished job links to its result', async (t) => {
  const id = await aBackgroundJob(3, 7, 7, true)
  const { html } = await editor.get(`/teams/${team.id}/background-jobs/${id}`)
  t.match(html, `href="/dashboard/teams/${team.id}/emails">Show emails</a>`)
})
