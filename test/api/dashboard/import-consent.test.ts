/** Imports of files from other services and Excel: a consent column, and a separator line. */
import { showSuppression } from '../../../db/audience/suppressions/lift.ts'
import { shows } from '../../support/dashboard.ts'
import { startImportPages } from '../../support/import-pages.ts'
import t from '../../support/tap.ts'

const pages = await startImportPages(t)
const { database, call, team, editor, known, create, uploaded } = pages

const statusOf = async (email: string) => (await known(email))?.status

/** Imports an upload with this mapping. @param changes more fields of the form. */
async function imported(draft: string, columns: readonly string[], changes: Record<string, string> = {}) {
  const form = Object.fromEntries(columns.map((to, at) => [`column.${at}`, to]))
  await editor.post(draft, { ...form, merge: 'yes', ...changes })
  await pages.imported(draft)
}

t.test('a "no" unsubscribes, and a "yes" resubscribes no one', async (t) => {
  await create('known@example.org')
  await create('left@example.org')
  await call('POST', '/v1/contacts/left@example.org/unsubscribe', { key: team.key })
  const rows = 'new,false known,false left,true fine,true'
    .split(' ')
    .map((row) => row.replace(',', '@example.org,'))
  const draft = await uploaded(`email,subscribed\n${rows.join('\n')}\n`)
  const page = await editor.get(draft)
  t.match(page.html, /<option value="consent" selected>/)
  t.match(page.html, /name="no" value="unsubscribed"[^>]* checked/)
  await imported(draft, ['email', 'consent'])
  t.equal(await statusOf('new@example.org'), 'unsubscribed')
  t.equal(await statusOf('known@example.org'), 'unsubscribed')
  t.equal(await statusOf('left@example.org'), 'unsubscribed')
  t.equal(await statusOf('fine@example.org'), 'subscribed')
})

t.test("consent also counts if the columns weren't opened", async (t) => {
  const draft = await uploaded('email,status\nunseen@example.org,blocklisted\n')
  await pages.imported(draft)
  t.equal(await statusOf('unseen@example.org'), 'unsubscribed')
})

t.test('a "no" can also suppress or be ignored', async (t) => {
  const draft = await uploaded('email,opt_in\nblocked@example.org,no\n')
  await imported(draft, ['email', 'consent'], { no: 'suppressed' })
  t.match(await showSuppression(database, team.id, 'blocked@example.org'), { cause: 'manual' })
  t.equal(await statusOf('blocked@example.org'), 'bounced')
  const other = await uploaded('email,opt_in\nignored@example.org,no\n')
  await imported(other, ['email', 'consent'], { no: 'ignore' })
  t.equal(await statusOf('ignored@example.org'), 'subscribed')
})

t.test('rejects a record with an invalid consent', async (t) => {
  const draft = await uploaded('email,status\nodd@example.org,gold\n')
  shows(t, await editor.get(`${draft}/check`), /2 status gold Must be yes or no/)
})

t.test("reads Excel's separator line", async (t) => {
  for (const line of ['sep=;\r\n', '\u{feff}sep=;\n', 'SEP=|\n']) {
    const separator = line.includes('|') ? '|' : ';'
    const draft = await uploaded(
      `${line}email${separator}town\nana@example.org${separator}Graz, Linz\nnobody${separator}\n`,
    )
    const page = await editor.get(draft)
    shows(t, page, /Records 2 records/)
    t.match(page.html, /name="name\.1"[^>]* value="town"/, JSON.stringify(line))
    shows(t, await editor.get(`${draft}/check`), /New contacts 1 of 2 records.* 4 email nobody Must be/)
    await editor.post(`${draft}/discard`)
  }
})

t.test('shows invisible characters of a rejected address', async (t) => {
  const draft = await uploaded(
    'email\nana\u{200b}@example.org\n\u{200b}ben@example.org\nmax@example.org\u{2060}\n',
  )
  const check = await editor.get(`${draft}/check`)
  shows(t, check, /ana\[U\+200B\]@example\.org .*\[U\+200B\]ben@example\.org .*\.org\[U\+2060\]/)
})
