/** Limits of the number, age and size of uploads that wait for their import. */
import { sql } from 'slonik'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { purgeUpserts } from '../../../workers/jobs/purge-upserts.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { startImportPages } from '../../support/import-pages.ts'
import t from '../../support/tap.ts'

const pages = await startImportPages(t)
const { service, database, team, lastEntry, editor, importPath, known, uploaded, finish, imported } = pages

const purge = () => purgeUpserts(service.deps as unknown as WorkerDeps)

t.test('an import older than a week runs before its deletion', async (t) => {
  const age = () =>
    database.query(sql.unsafe`
      update contact_imports set created_at = now() - interval '8 days' where team_id = ${team.id}`)
  const draft = await uploaded('email\nlate@example.com\n')
  await editor.post(`${draft}/start`)
  await age()
  await purge()
  await finish(draft)
  t.ok(await known('late@example.com'))
  await purge()
  t.equal((await editor.get(draft)).status, 404)
})

t.test('a team has 5 pending uploads, for a day each', async (t) => {
  const drafts: string[] = []
  for (let index = 0; index < 5; index += 1) drafts.push(await uploaded(`email\nwait${index}@example.com\n`))
  const sixth = await editor.upload(importPath, 'six.csv', 'email\nsix@example.com\n')
  t.equal(sixth.status, 400)
  shows(t, sixth, /5 uploads haven’t been imported yet\. Import or discard one first\./)
  const [one = '', other = '', third = '', fourth = ''] = drafts
  const presses = await Promise.all(Array.from({ length: 5 }, () => editor.post(`${fourth}/start`)))
  t.equal(presses.filter(({ status }) => status === 303).length, 1, 'of many presses one starts it')
  const asked = await editor.ask(`${one}/discard`)
  shows(t, asked, /Discard the upload /)
  t.equal((await editor.post(`${one}/discard`)).location, importPath)
  t.equal((await editor.get(one)).status, 404)
  const operator = await signedIn(service, { operator: true })
  await operator.get(other)
  t.match(await lastEntry(), { actor: operator.email, action: 'import.open', subject: 'people.csv' })
  await imported(third)
  const age = (hours: number) =>
    database.query(sql.unsafe`
      update contact_imports set created_at = now() - make_interval(hours => ${hours}) where team_id = ${team.id}`)
  await age(23)
  await purge()
  t.equal((await editor.get(other)).status, 200)
  await age(25)
  await purge()
  t.equal((await editor.get(other)).status, 404)
  t.equal((await editor.get(third)).status, 200, 'what was started stays')
})

t.test('rejects oversized files at upload without storing them', async (t) => {
  const columns = Array.from({ length: 10_000 }, (_, index) => `c${index}`).join(',')
  const wide = `"a\nb",${',x'.repeat(16_383)}`
  for (const [file, words] of [
    [`email,${columns}\na@example.com\n`, /names 10001 columns, and the limit is 200/],
    [`${','.repeat(3_000_000)}\n`, /The first row has more than 16,384 cells\./],
    [`email\r\n"a\r\nb"\r\n${wide}`, /The record that starts after line 3 has more than 16,384 cells./],
    ['x'.repeat(3_000_000), /The first row is longer than 1 MB/],
    [`email\n${'x'.repeat(3_000_000)}`, /The record that starts after line 1 is longer than 1 MB/],
  ] as const) {
    const answer = await editor.upload(importPath, 'hostile.csv', file)
    t.equal(answer.status, 400)
    shows(t, answer, words)
  }
  t.notMatch((await editor.get(importPath)).html, /hostile\.csv/)
})

t.test('a huge record fails the import with its position', async (t) => {
  const fine = Array.from({ length: 9_000 }, (_, index) => `far${index}@example.com`).join('\n')
  const draft = await uploaded(`email\n\n${fine}\n${'x'.repeat(1_400_000)}`)
  shows(t, await editor.get(draft), /Records 9,001 records/)
  const failed = await imported(draft)
  shows(t, failed, /Nothing was imported: The record that starts after line 9,?002 is longer than 1 MB/)
  t.equal(await known('far0@example.com'), null)
})
