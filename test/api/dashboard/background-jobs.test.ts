/** Progress, rate and remaining time of background jobs. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, team } = await world(t)
const editor = await signedIn(service, { team: team.id, role: 'editor' })

/** Inserts a job that started some time ago. @returns its ID. */
const aBackgroundJob = (minutes: number, done: number, total: number | null, over = false) =>
  service.database.oneFirst(sql.unsafe`
    insert into background_jobs (id, team_id, kind, done, total, begun_by, begun_at, progressed_at, finished_at)
    values (${uuidv7()}, ${team.id}, 'email.requeue', ${done}, ${total}, 'ana@example.com',
      now() - make_interval(secs => ${minutes * 60}), now(), case when ${over} then now() end) returning id`)

t.test('a running job shows its rate and remaining time', async (t) => {
  // Started long ago, so that the duration of the test doesn't change the rate.
  const id = await aBackgroundJob(2_000, 1_200_000, 1_206_000)
  shows(
    t,
    await editor.get(`/teams/${team.id}/background-jobs/${id}`),
    /1,200,000 of 1,206,000 .* about 600 items a minute, done in about 10 minutes/,
  )
  const list = await editor.get(`/teams/${team.id}/background-jobs`)
  shows(t, list, /1,200,000 of 1,206,000 About 600 items a minute, done in about 10 minutes/)
  t.match(list.html, '<span class="vh">running</span>', 'the bar has a text for screen readers')
})

t.test('shows no remaining time at the start, without a total, or at the end', async (t) => {
  for (const id of [
    await aBackgroundJob(0, 100, 7_000),
    await aBackgroundJob(3, 100, null),
    await aBackgroundJob(3, 7_000, 7_000, true),
  ])
    t.notMatch(textOf((await editor.get(`/teams/${team.id}/background-jobs/${id}`)).html), /a minute|done in/)
})
