/** The verbs of email templates. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { versionsByIds } from '../../../db/content/templates/templates.sql.ts'
import { adminCli } from '../../support/admin.ts'
import { EMPTY } from '../../support/empty.ts'
import { openStore } from '../../support/stored-emails.ts'
import t, { type Test } from '../../support/tap.ts'

async function start(t: Test) {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const directory = t.testdir()
  const team = await store.team()
  const file = async (name: string, content: string | Buffer) => {
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, name), content)
    return join(directory, name)
  }
  return { ...store, cli, id: team, file, create: ['template', 'create', team, '--name', 'Welcome'] }
}

t.test('template create prints all variables in order of appearance', async (t) => {
  const { cli, id, file, create } = await start(t)
  const html = await file('a.html', '<p>{{ name }} {{order.id}} {{name}}</p>')
  const text = await file('a.txt', '{{first-name}} {{name}} {{1}}')
  const made = await cli.json([...create, '--html', html, '--text', text])
  t.match(made, { name: 'Welcome', slots: ['name', 'order.id', 'first-name', '1'] })
  const again = await cli.fault([...create, '--html', html])
  t.match(again, /^name .*already has .*"Welcome"/)
  const other = [...create.slice(0, -1), 'Other', '--html', '-']
  const piped = await cli.json(other, { input: '<p>Grüße, {{x}}</p>' })
  t.match(piped, { slots: ['x'], decoded: EMPTY })
  t.match(await cli.json(['template', 'list', id]), [
    { id: made.id, name: 'Welcome', version_id: made.version_id, slots: made.slots, created_at: /Z$/ },
    { id: piped.id },
  ])
})

t.test('template create and update decode variables in links', async (t) => {
  const { cli, id, file, create } = await start(t)
  const made = await cli.json([...create, '--html', await file('1', '<a href="%7B%7Blink%7D%7D">x</a>')])
  t.match(made, { slots: ['link'], decoded: ['link'] })
  const html = await file('2', '<a href="%7b%7blink%7d%7d">{{name}}</a>')
  t.match(await cli.json(['template', 'update', id, made.id, '--html', html]), { decoded: ['link'] })
  t.match(await cli.json(['template', 'show', id, made.id]), { html: '<a href="{{link}}">{{name}}</a>' })
})

t.test('template update creates a version, and accepted emails keep theirs', async (t) => {
  const { cli, id, file, create, database, email } = await start(t)
  const made = await cli.json([
    ...create,
    '--html',
    await file('1', '<p>one {{a}}</p>'),
    '--text',
    await file('t', 'T {{b}}'),
  ])
  const variables = { a: '1 & 2', b: '3', surplus: 'x' }
  const old = await email(id, new Date(), { template_id: made.id, html: null, variables })
  const updated = await cli.json([
    'template',
    'update',
    id,
    made.id,
    '--html',
    await file('2', '<p>two {{c}}</p>'),
  ])
  t.match(updated, { id: made.id, name: 'Welcome', slots: ['c', 'b'] }, 'the text stays')
  t.not(updated.version_id, made.version_id)
  const bare = ['template', 'update', id, made.id, '--html', await file('2', '<p>three</p>'), '--text']
  const third = await cli.json([...bare, await file('none', '')])
  t.same(third.slots, [], 'an empty text takes it away')
  t.match(await cli.json(['email', 'show', id, old.id]), { html: '<p>one 1 &amp; 2</p>', body_text: 'T 3' })
  const refs = [made, updated, third].map(({ version_id }) => ({ team_id: id, id: version_id }))
  t.equal((await versionsByIds(database, refs)).length, 3)
})

t.test('template create rejects an invalid template with its position', async (t) => {
  const { cli, file, create } = await start(t)
  const refuse = async (content: string | Buffer, reason: RegExp) =>
    t.match(await cli.fault([...create, '--html', await file('x', content)]), reason)
  await refuse('', /html must not be empty/)
  await refuse('<p>\n{{#if x}}{{/if}}', /^html .*: line 2: .*if/)
  await refuse('{{{x}}}', /^html .*: line 1: \{\{\{x\}\}\} .*\{\{name\}\}/)
  await refuse('{{a b}}\n', /^html .*: line 1: /)
  await refuse('{{#each', /^html /)
  await refuse('a\0b', /html must not contain NUL/)
  await refuse('x'.repeat(1024 * 1024 + 1), /html must be at most 1 MiB/)
  await refuse(Buffer.from([0x3c, 0xff, 0xfe]), /isn't UTF-8 text/)
  const html = await file('good', '<p>good</p>')
  const badText = await cli.fault([...create, '--html', html, '--text', await file('bad', '{{>x}}')])
  t.match(badText, /^text .*: line 1: /)
  const missing = await cli.fault([...create, '--html', '/nowhere/x.html'])
  t.match(missing, /Could not read \/nowhere\/x\.html: file not found/)
  t.match(await cli.fault([...create, '--html', '/']), /Could not read \/: it is a directory/)
  t.match(await cli.fault([...create, '--html', '-', '--text', '-']), /Only one of --html and --text/)
})

t.test("template update fails for another team's template", async (t) => {
  const { cli, id, file, create, team } = await start(t)
  const html = await file('x', '<p>x</p>')
  const made = await cli.json([...create, '--html', html])
  const other = await team()
  t.match(await cli.fault(['template', 'update', other, made.id, '--html', html]), /No template/)
  t.match(await cli.fault(['template', 'update', id, 'x', '--html', html]), /must be a UUID/)
})

t.test('template show prints parts and versions, and delete keeps emails', async (t) => {
  const { cli, id, file, create, email, database } = await start(t)
  const parts = ['--html', await file('1', '<p>one {{a}}</p>'), '--text', await file('t', 'T')]
  const made = await cli.json([...create, ...parts])
  const before = await email(id, new Date(), { template_id: made.id, html: null, variables: { a: 'x' } })
  const updated = await cli.json(['template', 'update', id, made.id, '--html', await file('2', '<p>two</p>')])
  const shown = await cli.json(['template', 'show', id, made.id])
  t.match(shown, { id: made.id, name: 'Welcome', html: '<p>two</p>', text: 'T', slots: EMPTY })
  t.match(shown.versions, [{ id: updated.version_id }, { id: made.version_id, slots: ['a'] }])

  const gone = await cli.json(['template', 'delete', id, made.id])
  t.same(gone, { id: made.id, name: 'Welcome', deleted: true })
  t.same(await cli.json(['template', 'list', id]), [])
  t.match(await cli.json(['email', 'show', id, before.id]), { html: '<p>one x</p>', body_text: 'T' })
  t.equal((await versionsByIds(database, [{ team_id: id, id: made.version_id }])).length, 1)
  const again = email(id, new Date(), { template_id: made.id, html: null, variables: { a: 'x' } })
  await t.rejects(again, /template/, 'a send that names it is refused')
  const unknown = `No template ${made.id} in this team.`
  t.equal(await cli.fault(['template', 'delete', id, made.id]), unknown)
  t.equal(await cli.fault(['template', 'show', id, made.id]), unknown)
})
