/** The text part and the Date of sent emails. Real workers and a real SMTP server, and two parsers. */
import { simpleParser } from 'mailparser'
import PostalMime from 'postal-mime'
import { sql } from 'slonik'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { ageEmailRows } from '../../support/email-rows.ts'
import { jobStates, setJobsDue } from '../../support/rows.ts'
import { anEmail, byCli, makeTeam, type Service, sendEmail, type TestTeam } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}) {
  const service = await renewed()
  const sink = await startSmtpSink(t, script)
  return { service, sink, team: await makeTeam(service) }
}

/** Returns the parts of the last message as both parsers read them. Neither generates a text. */
async function partsOf(sink: SmtpSink) {
  await until('it arrives', async () => sink.messages().length > 0)
  const { raw } = sink.last()
  const read = await simpleParser(raw, { skipHtmlToText: true })
  const other = await PostalMime.parse(raw)
  return [
    { text: read.text?.trim(), html: typeof read.html === 'string' ? read.html.trim() : null },
    { text: other.text?.trim(), html: other.html?.trim() },
  ]
}

t.test('an email with only HTML gets a text part', async (t) => {
  const { service, sink, team } = await begin(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const html = '<p>Grüße, <a href="https://shop.example/?a=1&amp;b=2">zum Shop</a></p>'
  const { body } = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ html }) })
  for (const parts of await partsOf(sink))
    t.strictSame(parts, { text: 'Grüße, zum Shop (https://shop.example/?a=1&b=2)', html })
  t.equal(body.body_text, '')
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const page = await viewer.get(`/teams/${team.id}/emails/${body.id}?view=text`)
  shows(t, page, 'Grüße, zum Shop (https://shop.example/?a=1&b=2)')
})

t.test("a template's email without text gets one with values", async (t) => {
  const { service, sink, team } = await begin(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const html = `<p>Hi {{name}}</p>${'<p>More</p>'.repeat(1_000)}`
  const template = await saveTemplate(byCli(service.database), team.id, { name: 'Hi', html, text: '' })
  await sendEmail(service, team, { html: undefined, template_id: template.id, variables: { name: 'A & B' } })
  for (const { text } of await partsOf(sink)) t.match(text, /^Hi A & B\n\nMore\n/)
})

t.test('an email keeps its own text', async (t) => {
  const { service, sink, team } = await begin(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await sendEmail(service, team, { html: '<p>Hello</p>', text: 'Mine' })
  for (const { text } of await partsOf(sink)) t.equal(text, 'Mine')
})

const dateOf = (raw: Buffer): number => Date.parse(/^Date: (.*)$/m.exec(raw.toString('latin1'))?.[1] ?? '')

/**
 * Returns the dates of the attempts of an email that waited for its first claim. The first attempt is
 * deferred.
 */
async function datesOf(t: Test, { waited }: { waited: string }) {
  const dates: number[] = []
  const { service, sink, team } = await begin(t, {
    onMessage: ({ raw }) => {
      dates.push(dateOf(raw))
      return dates.length === 1 ? '451 4.3.0 Later' : undefined
    },
  })
  const id = await sendEmail(service, team)
  await ageEmailRows(service, sql.fragment`id = ${id}`, waited)
  const accepted = await acceptedAt(service, team, id)
  const since = Date.now()
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it was deferred', async () => dates.length === 1)
  await until('its result is stored', async () => !(await jobStates(service, id)).includes('active'))
  await setJobsDue(service, id)
  await until('it is tried again', async () => dates.length === 2)
  return { dates, accepted, since }
}

const acceptedAt = async ({ database }: Service, team: TestTeam, id: string): Promise<number> =>
  Date.parse((await emailById(database, team.id, id))?.created_at ?? '')

t.test('Date is the acceptance within an hour of it', async (t) => {
  const { dates, accepted } = await datesOf(t, { waited: '50 minutes' })
  const second = Math.floor(accepted / 1_000) * 1_000
  t.strictSame(dates, [second, second])
})

t.test('Date is the first claim if over an hour late', async (t) => {
  const { dates, since } = await datesOf(t, { waited: '61 minutes' })
  t.equal(dates[0], dates[1])
  t.ok((dates[0] ?? 0) >= since - 2_000, 'it is the time of the claim')
})
