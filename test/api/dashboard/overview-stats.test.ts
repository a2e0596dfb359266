/** Charts and counts on the overview of a team. */
import { readFile } from 'node:fs/promises'
import { sql } from 'slonik'
import { signedIn, textOf } from '../../support/dashboard.ts'
import { makeTeam, sendEmail, startService, type TestTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const service = await startService(t)
const { database } = service

/** Returns the text of a team's overview for a viewer. */
async function overviewOf({ id }: TestTeam, chart = ''): Promise<string> {
  const viewer = await signedIn(service, { team: id, role: 'viewer' })
  return textOf((await viewer.get(`/teams/${id}${chart}`)).html)
}

const send = (team: TestTeam) => sendEmail(service, team)

/** Counts messages of a day, some days ago. */
const count = (team: TestTeam, channel: string, status: string, messages: number, ago = 0) =>
  database.query(sql.unsafe`
    insert into daily_figures (team_id, channel, day, status, count)
    values (${team.id}, ${channel}, (now() at time zone 'UTC')::date - ${ago}::int, ${status}, ${messages})`)

t.test("shows the last day by the reader's hours", async (t) => {
  const team = await makeTeam(service)
  t.notMatch(await overviewOf(team), 'of the last 24 hours')
  const [hour, day] = [sql.fragment`date_trunc('hour', now(), 'UTC')`, sql.fragment`interval '23 hours'`]
  await database.query(sql.unsafe`
    insert into hourly_figures (team_id, channel, hour, status, count)
    select ${team.id}, channel, h, status, n from (values
      ('email', ${hour}, 'delivered', 1200), ('email', ${hour}, 'sent', 30), ('email', ${hour} - ${day}, 'bounced', 7),
      ('email', ${hour} - ${day}, 'complained', 2),
      ('email', ${hour} - ${day} - interval '1 hour', 'bounced', 90),
      ('whatsapp', ${hour}, 'failed', 3)) as f (channel, h, status, n)`)
  for (const channel of ['email', 'whatsapp']) await count(team, channel, 'sent', 1)
  const page = await overviewOf(team, '?range=24h')
  const counts =
    /Emails of the last 24 hours .* delivered 1,200 not reported 30 queued 0 bounced 7 complained 2 /
  t.match(page, counts)
  const text = await overviewOf(team, '?channel=whatsapp&range=24h')
  t.match(text, /WhatsApp messages of the last 24 hours .* delivered 0 sent 0 not reported yet 0 failed 3 /)
  t.match(page, / now .* By hour \(UTC time\) Hour delivered not reported queued bounced complained All /)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  owner.cookies.set('heliograph-zone', 'Asia/Kolkata')
  const { html } = await owner.get(`/teams/${team.id}?range=24h`)
  const title = /<title>\d{4}-\d\d-\d\d \d\d:30: 1,200 delivered, 30 not reported<\/title>/
  t.match(html, title, 'what a column says')
  const there = textOf(html)
  t.match(there, /By hour \(Asia\/Kolkata time\) .* \d\d:30 /)
  const file = (await owner.get(`/teams/${team.id}/emails.csv`)).headers.get('content-disposition') ?? ''
  const [, named = ''] = /^attachment; filename="emails-(\d{4}-\d\d-\d\d-\d{4})\.csv"$/.exec(file) ?? []
  const time = named.replace(/-(\d\d)(\d\d)$/, 'T$1:$2+05:30')
  t.ok(Math.abs(Date.parse(time) - Date.now()) < 3_600_000, `${file} is named with the reader’s time`)
})

t.test("accepted WhatsApp messages aren't shown as waiting", async (t) => {
  const team = await makeTeam(service)
  await sendWhatsapp(service, team, (await makeTemplate(service, team.id)).id)
  await database.query(sql.unsafe`
    update whatsapp_messages set accepted_at = now(), created_at = created_at - interval '10 minutes'
    where team_id = ${team.id}`)
  const page = await overviewOf(team, '?channel=whatsapp&range=24h')
  t.match(page, /WhatsApp messages of the last 24 hours .* delivered 0 sent 0 not reported yet 1 failed 0 /)
  t.notMatch(page, 'waiting for longer')
})

t.test('stacked layers of a chart have different colours', async (t) => {
  const team = await makeTeam(service)
  await count(team, 'email', 'bounced', 5)
  await count(team, 'email', 'complained', 5)
  await count(team, 'whatsapp', 'failed', 5)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const pages = [await owner.get(`/teams/${team.id}`), await owner.get(`/teams/${team.id}?channel=whatsapp`)]
  const html = pages.map((page) => page.html).join()
  const styles = new URL('../../../api/dashboard/components/assets/dashboard.css', import.meta.url)
  const css = await readFile(styles, 'utf8')
  const colourOf = (tone = ''): string | undefined =>
    new RegExp(`^\\.${tone}\\{--c:(.+)\\}$`, 'm').exec(css)?.[1]
  const drawn = [...html.matchAll(/<rect [^>]*class="(\w+)"/g)].map(([, tone]) => colourOf(tone))
  t.equal(new Set(drawn.slice(0, 2)).size, 2, `${drawn}`)
  const legends = [...html.matchAll(/<ul class="legend">.*?<\/ul>/g)].map(([legend]) =>
    [...legend.matchAll(/<li class="(\w+)"/g)].map(([, tone]) => colourOf(tone)),
  )
  const lengths = legends.map(({ length }) => length)
  t.strictSame(lengths, [5, 4])
  for (const colours of legends) {
    t.notOk(colours.includes(undefined), `${colours}`)
    t.equal(new Set(colours).size, colours.length, `${colours}`)
  }
})

t.test('a chart has one tooltip per hour', async (t) => {
  const team = await makeTeam(service)
  const statuses = 'queued sent delivered opened clicked bounced complained read failed'.split(' ')
  await database.query(sql.unsafe`
    insert into hourly_figures (team_id, channel, hour, status, count)
    select ${team.id}, channel, date_trunc('hour', now(), 'UTC') - ago * interval '1 hour', status, 12345
    from unnest(array['email', 'whatsapp']) channel, generate_series(0, 23) ago,
      unnest(${sql.array(statuses, 'text')}) status`)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  for (const channel of ['email', 'whatsapp']) {
    await count(team, channel, 'sent', 1)
    const { html } = await owner.get(`/teams/${team.id}?range=24h&channel=${channel}`)
    t.equal(html.match(/<g><title>/g)?.length, 24)
    t.equal(html.match(/<title>/g)?.length, 24 + 1, 'and the page has its own')
  }
  t.equal((await owner.get(`/teams/${team.id}?range=1y`)).status, 400)
})

t.test('the chart includes new messages immediately', async (t) => {
  const team = await makeTeam(service)
  t.notMatch(await overviewOf(team), 'By day (UTC)')
  await send(team)
  t.match(await overviewOf(team), /By day \(UTC\) .* 0 0 1 0 0 1/)
  t.notMatch(await overviewOf(team), 'Email WhatsApp 24 hours')
  await sendWhatsapp(service, team, (await makeTemplate(service, team.id)).id)
  t.match(await overviewOf(team), 'Email WhatsApp 24 hours')
  const whatsapp = await overviewOf(team, '?channel=whatsapp')
  t.match(whatsapp, /WhatsApp messages of the last 30 days .* By day \(UTC\) .* 0 0 1 0 1/)
})

t.test("doesn't compare with an empty period or show unreported deliveries", async (t) => {
  const team = await makeTeam(service)
  await count(team, 'email', 'sent', 90)
  const page = await overviewOf(team)
  t.match(
    page,
    /Sent, 30 days 90 Delivered – your mail server doesn’t report deliveries Bounced 0 % limit 5\.0 %/,
  )
  t.notMatch(page, 'before')
  await count(team, 'email', 'delivered', 10)
  t.match(await overviewOf(team), /Sent, 30 days 100 Delivered 10\.0 % Bounced/)
})

t.test('compares four counts with the previous 30 days and limits', async (t) => {
  const team = await makeTeam(service)
  for (let ago = 0; ago < 60; ago += 1) {
    await count(team, 'email', 'delivered', ago < 30 ? 90 : 99, ago)
    await count(team, 'email', 'bounced', ago < 30 ? 10 : 1, ago)
  }
  const page = await overviewOf(team)
  t.match(page, 'Sent, 30 days 3,000 3,000 before')
  t.match(page, 'Delivered 90.0 % 99.0 % before')
  t.match(page, 'Bounced 10.0 % limit 5.0 %')
  t.match(page, 'Complaints 0 % limit 0.10 %')
})

t.test('counts why emails bounced, most common reason first', async (t) => {
  const team = await makeTeam(service)
  t.notMatch(await overviewOf(team), 'Why emails bounced')
  const bounce = async (kind: 'bounced' | 'suppressed', detail: string) => {
    const id = await send(team)
    await database.query(sql.unsafe`update email_states set status = 'bounced' where id = ${id}`)
    await database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      values (${team.id}, ${id}, uuid_send(gen_random_uuid()), ${kind}, now(), ${detail})`)
  }
  await bounce('suppressed', 'a@example.com')
  await bounce('bounced', '552 5.2.2 Over quota')
  await bounce('bounced', '550 5.1.1 <a@example.com> rejected')
  await bounce('bounced', '550 No such user here')
  await bounce('bounced', '550 5.1.1 <b@example.com> rejected')
  t.match(
    await overviewOf(team),
    'Why emails bounced Bounces of the last 30 days. The mailbox does not exist 2 Other reasons 1 The mailbox is full 1',
  )
})
