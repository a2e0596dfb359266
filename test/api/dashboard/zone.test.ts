/** Local times in the reader's zone, also when summer time starts or ends. */
import { momentWords, parseLocalTime, toLocalTime } from '../../../api/dashboard/components/zone.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { stopClock } from '../../support/clock.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const NOW = new Date('2027-03-20T10:00:00Z')
const BERLIN = 'Europe/Berlin'
/** A local time that Berlin skips on that day, and the one that it becomes. */
const [LEFT_OUT, INSTEAD] = [
  '2027-03-28T02:30',
  '28 Mar 2027, 03:30 in Europe/Berlin (28 Mar 2027, 01:30:00 UTC)',
]

const url = 'http://localhost'
const { service, team } = await world(t, { clock: () => NOW, publicUrl: url })
await stopClock(service.database, NOW)
const editor = await signedIn(service, { team: team.id, role: 'editor' })
editor.cookies.set('heliograph-zone', BERLIN)

t.test('converts local times to UTC and back', (t) => {
  for (const [zone, typed, moment] of [
    ['UTC', '2027-01-05T09:00', '2027-01-05T09:00:00.000Z'],
    [BERLIN, '2027-01-05T09:00', '2027-01-05T08:00:00.000Z'],
    [BERLIN, '2027-07-05T09:00', '2027-07-05T07:00:00.000Z'],
    ['Asia/Kolkata', '2027-07-05T00:15', '2027-07-04T18:45:00.000Z'],
    ['America/Los_Angeles', '2027-12-31T23:00', '2028-01-01T07:00:00.000Z'],
    ['Pacific/Chatham', '2027-01-05T00:00', '2027-01-04T10:15:00.000Z'],
  ] as const) {
    t.equal(parseLocalTime(typed, zone), moment, `${typed} in ${zone}`)
    t.equal(toLocalTime(moment, zone), typed, `${moment} in ${zone}`)
  }
  for (const typed of [
    'tomorrow',
    '2027-11-31T09:00',
    '2027-02-29T09:00',
    '2027-01-05T24:00',
    '0000-01-01T00:00',
  ])
    t.equal(parseLocalTime(typed, BERLIN), `${typed}Z`, 'what is no time stays none')
  t.end()
})

t.test('maps skipped and repeated local times to an adjacent one', (t) => {
  t.equal(momentWords(parseLocalTime(LEFT_OUT, BERLIN), BERLIN), INSTEAD)
  t.equal(parseLocalTime('2027-10-31T02:30', BERLIN), '2027-10-31T01:30:00.000Z')
  t.equal(parseLocalTime('2027-03-14T02:30', 'America/New_York'), '2027-03-14T06:30:00.000Z')
  t.end()
})

t.test('reschedules an email in the time zone of the form', async (t) => {
  const scheduled_at = '2027-03-21T09:00:00Z'
  const id = await sendEmail(service, team, { scheduled_at })
  const page = `/teams/${team.id}/emails/${id}`
  for (const [typed, words] of [
    ['2027-03-22T14:00', '22 Mar 2027, 14:00 in Europe/Berlin (22 Mar 2027, 13:00:00 UTC)'],
    ['2027-04-02T14:00', '2 Apr 2027, 14:00 in Europe/Berlin (2 Apr 2027, 12:00:00 UTC)'],
    [LEFT_OUT, INSTEAD],
  ]) {
    const form = formTo((await editor.get(page)).html, `${page}/move`)
    t.strictSame(form.zone, [BERLIN])
    const { location } = await editor.post(`${page}/move`, { ...form, scheduled_at: typed ?? '' })
    const shown = textOf((await editor.get(location ?? '')).html)
    t.ok(shown.includes(`Rescheduled to ${words}.`), shown)
  }
  const { html } = await editor.get(page)
  t.match(html, /Scheduled for <time datetime="2027-03-28T01:30:00.000Z">/, 'for the script to show')
  const form = formTo(html, `${page}/move`)
  t.strictSame(form.scheduled_at, ['2027-03-28T03:30'], 'what is stored is shown in the zone')
})

t.test('keeps an unchanged time to the second, also if repeated', async (t) => {
  await stopClock(service.database, new Date('2027-10-30T10:00:00Z'))
  for (const scheduled_at of [
    '2027-10-30T12:00:30.250Z',
    '2027-10-31T00:30:00.000Z',
    '2027-10-31T01:30:00.000Z',
  ]) {
    const id = await sendEmail(service, team, { scheduled_at })
    const page = `/teams/${team.id}/emails/${id}`
    const form = formTo((await editor.get(page)).html, `${page}/move`)
    t.equal((await editor.post(`${page}/move`, form)).status, 303)
    const { html } = await editor.get(page)
    t.ok(html.includes(`Scheduled for <time datetime="${scheduled_at}">`), scheduled_at)
  }
  await stopClock(service.database, NOW)
})

t.test('confirms a skipped local time with the actual time', async (t) => {
  const { create, contacts } = await broadcastingOf(service, team)
  await contacts(['zoned'])
  const page = `/teams/${team.id}/broadcasts/${await create()}`
  const { status } = await editor.press(`${page}/edit?step=when`, `${page}/edit`, { send_at: LEFT_OUT })
  t.equal(status, 303)
  const { html } = await editor.get(page)
  const asked = await editor.ask(`${page}/send`, formTo(html, `${page}/send`))
  shows(t, asked, ` for ${INSTEAD}?`)
})
