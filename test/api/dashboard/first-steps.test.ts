/** The first steps on the overview of a new team. */
import { sql } from 'slonik'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

const service = await startService(t)
const { database } = service

t.test('a new team sees first steps instead of stats', async (t) => {
  const team = await makeTeam(service, { domain: 'fresh.test' })
  const as = async (role: 'owner' | 'editor' | 'viewer') =>
    textOf((await (await signedIn(service, { team: team.id, role })).get(`/teams/${team.id}`)).html)
  const page = await as('owner')
  t.match(page, /First steps Add the domain .*fresh\.test .* Send a test email .* Invite a colleague/)
  t.notMatch(page, 'Sent, 30 days')
  const forEditors = await as('editor')
  t.match(forEditors, /First steps Owners of the team add its domain, keys and members\. Add the domain/)
  t.notMatch(await as('viewer'), 'First steps', 'who can do none of them')
})

t.test('the first steps are shown until all are done', async (t) => {
  const team = await makeTeam(service, { domain: 'steps.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const left = async (): Promise<string[]> =>
    [
      ...(await owner.get(`/teams/${team.id}`)).html.matchAll(/<li class=""><div><a [^>]+><strong>([^<]+)/g),
    ].map(([, title = '']) => title)
  t.strictSame(await left(), ['Send a test email', 'Invite a colleague'])
  const integration = `/teams/${team.id}/integration`
  t.match(await owner.get(integration), { html: '<option value="hello@steps.test"' })
  const sent = await owner.post(`${integration}/test-email`, { from: 'hello@steps.test', to: owner.email })
  shows(t, await owner.get(sent.location ?? ''), /A test email from Heliograph .*To .*owner/)
  t.strictSame(await left(), ['Invite a colleague'])
  t.match(await owner.get(`/teams/${team.id}`), { html: 'Sent, 30 days' })
  await owner.post(`/teams/${team.id}/people`, { email: 'colleague@example.org', role: 'viewer' })
  t.notMatch((await owner.get(`/teams/${team.id}`)).html, 'First steps')
})

t.test('suggests an invitation until a week after the first email', async (t) => {
  const team = await makeTeam(service, { domain: 'alone.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const firstSentBefore = (days: number) =>
    database.query(sql.unsafe`
      insert into daily_figures (team_id, channel, day, status, count)
      values (${team.id}, 'email', (now() at time zone 'utc')::date - ${days}::int, 'sent', 1)`)
  await firstSentBefore(7)
  t.match((await owner.get(`/teams/${team.id}`)).html, 'Invite a colleague')
  await firstSentBefore(8)
  t.notMatch((await owner.get(`/teams/${team.id}`)).html, 'First steps')
})

t.test('editors can send a test email from a verified domain', async (t) => {
  const team = await makeTeam(service, { domain: 'trial.test' })
  const path = `/teams/${team.id}/integration/test-email`
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  t.notMatch((await viewer.get(`/teams/${team.id}/integration`)).html, 'test-email')
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  for (const form of [
    { from: 'hello@elsewhere.test', to: 'a@example.org' },
    { from: 'hello@trial.test', to: 'nobody' },
    { from: '', to: 'a@example.org' },
  ])
    t.match((await editor.post(path, form)).status, /4\d\d/)
  const { html } = await editor.post(path, { from: 'hello@trial.test', to: 'ana@example' })
  t.match(
    html,
    /<details class="act" id="[^"]+" open>(?:(?!<\/details>)[\s\S])*value="ana@example"/,
    'what was typed',
  )
  t.notMatch(textOf((await viewer.get(`/teams/${team.id}`)).html), 'Emails of the last 7 days')
})
