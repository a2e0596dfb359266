/** Contacts from a CSV file, through the page, the queue and a worker. */
import t from 'tap'
import { auditEntries } from '../../../db/audit/audit.sql.ts'
import { contactByIdentity } from '../../../db/contacts/contacts.sql.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { makeTeam, startService } from '../../support/service.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const { database } = service
const team = await makeTeam(service, { plan: 'pro' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const path = `/teams/${team.id}/contacts/import`

t.test(
  'a file with bad records is imported around them, and they come back as a file with the reasons',
  async (t) => {
    const lines = Array.from({ length: 1_010 }, (_, at) =>
      at % 101 === 7 ? `not an address ${at},"Town, ""${at}"""` : `person${at}@example.com,"Town, ""${at}"""`,
    )
    const sent = await editor.upload(path, 'people.csv', `Email,city\r\n${lines.join('\r\n')}\r\n`)
    t.equal(sent.status, 303)
    const progress = sent.location ?? ''
    shows(t, await editor.get(progress), /0 of 1,010/)
    await startWorker(t, service)
    await until('it is done', async () => (await editor.get(progress)).html.includes('1,010 of 1,010'))
    shows(t, await editor.get(progress), /1,000 contacts stored/)
    const file = await editor.get(`${progress}/refused.csv`)
    t.match(file.headers.get('content-disposition'), 'attachment')
    const refused = file.html.trim().split('\r\n')
    t.equal(refused.length, 11)
    t.match(refused[0], /^email,city,line,reason$/)
    t.match(refused[1], /^not an address 7,"Town, ""7""",9,email must be an email address/)
    const contact = await contactByIdentity(database, team.id, 'person9@example.com')
    t.match(contact, { properties: { city: 'Town, "9"' }, status: 'subscribed' })
    shows(t, await editor.get(path), /people\.csv/)
    const operator = await signedIn(service, { operator: true })
    await operator.get(`${progress}/refused.csv`)
    const [line] = await auditEntries(database, { team: team.id, limit: 1 })
    t.match(line, { actor: operator.email, action: 'contact.export' })
  },
)

t.test('a file that cannot be imported at all is refused on the page, and nothing is stored', async (t) => {
  for (const [text, words] of [
    ['', /choose a CSV file/i],
    ['name\nAna', /must name a column email/],
    ['email,email\na@example.com,b', /each column once/],
    ['email\n', /no records/],
    ['email\n"a', /not CSV/],
    ['email\na\u0000@example.com', /NUL/],
  ] as const) {
    const answer = await editor.upload(path, 'bad.csv', text)
    t.equal(answer.status, 400, text)
    shows(t, answer, words)
  }
  t.notMatch((await editor.get(path)).html, /bad\.csv/)
})
