/** CSV files for spreadsheets: no part of a line starts a formula, wherever the line is split. */
import { shows, signedIn } from '../../support/dashboard.ts'
import { anEmail, world } from '../../support/service.ts'
import { isFormula, piecesOf } from '../../support/spreadsheets.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const HOSTILE = ["Ana;=cmd|'/C calc'!A0", 'a,+1', 'a\t-1', '"=1"; "@b"', '; \u00a0＝1', '=1', 'x;＋1;－1;＠1']

const { service, call, team } = await world(t)
const { key } = team
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string) => `/teams/${team.id}/${path}`

/** Fails unless a file has enough rows and no formulas. */
async function holdsNoFormula(t: { ok: (is: unknown, what: string) => unknown }, path: string, rows: number) {
  const { status, html } = await owner.get(at(path))
  t.ok(status === 200 && html.trim().split('\r\n').length > rows, `${path} has ${rows} rows`)
  for (const piece of piecesOf(html)) if (isFormula(piece)) t.ok(false, `${path}: ${JSON.stringify(piece)}`)
}

t.test('no part of a CSV line starts a formula', async (t) => {
  for (const [n, text] of HOSTILE.entries()) {
    const email = `p${n}@example.org`
    const properties = { note: text, [`k${n};=x`]: text, phone: '+15551234567' }
    t.equal((await call('POST', '/v1/contacts', { key, body: { email, properties } })).status, 201)
    const subject = text.replace('\t', ' ')
    const sent = await call('POST', '/v1/emails', {
      key,
      body: anEmail({ to: [email], subject, tags: [`a;=${n}`] }),
    })
    t.equal(sent.status, 201)
    const reason = { email: `s${n}@example.org`, as: 'bounced', reason: text }
    t.equal((await owner.post(at('suppressions'), reason)).status, 303)
  }
  for (const file of ['contacts.csv', 'emails.csv', 'suppressions.csv'])
    await holdsNoFormula(t, file, HOSTILE.length)
  shows(t, await owner.get(at('contacts.csv')), "Ana;'=cmd|'/C calc'!A0")
})

t.test('guards rejected records of an import, and keeps numbers', async (t) => {
  const quoted = HOSTILE.map((text) => `"${text.replaceAll('"', '""')}"`)
  const lines = quoted.map((cell) => `no address,+15551234567,7,${cell}`)
  const file = ['email,phone,visits,"=note;+x"', ...lines].join('\n')
  const draft = (await owner.upload(at('contacts/import'), 'list.csv', file)).location ?? ''
  t.equal((await owner.post(`${draft}/start`)).location, draft)
  await startWorker(t, service)
  await until('it is done', async () => (await owner.get(draft)).html.includes('refused.csv'))
  const path = `${draft}/refused.csv`.replace(at(''), '')
  await holdsNoFormula(t, path, HOSTILE.length)
  const { html } = await owner.get(at(path))
  t.match(html, /\r\nno address,'\+15551234567,7,"?Ana;'=cmd.*,2,/)
})

t.test('the CSV of emails has separate recipients and template names', async (t) => {
  const name = 'Receipt 17'
  const made = await owner.post(at('templates'), { name, html: '<p>Hi</p>', text: 'Hi' })
  const id = /templates\/([0-9a-f-]{36})/.exec(made.location ?? '')?.[1] ?? ''
  const to = ['"Example, Zoë" <zoe@example.org>', 'Max <max@example.org>']
  const { from } = anEmail()
  const sent = await call('POST', '/v1/emails', { key, body: { from, to, subject: 'Hi', template_id: id } })
  t.equal(sent.status, 201)
  const { html } = await owner.get(at('emails.csv'))
  t.match(html, '"""Example, Zoë"" <zoe@example.org>, Max <max@example.org>"')
  t.match(html, `,${name},`)
  t.notMatch(html, id)
})

t.test('the export of a contact is named after its address', async (t) => {
  const { headers } = await owner.post(at('contacts/p0%40example.org/export'))
  t.equal(headers.get('content-disposition'), 'attachment; filename="contact-p0@example.org.json"')
  const { html } = await owner.get(at('contacts/p0%40example.org'))
  t.match(html, /<form [^>]*\/export"[^>]* data-file>/, 'its button is free again once the file is there')
})
