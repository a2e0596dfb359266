/** The release step: its effect in the first deployment, and the data that later ones leave unchanged. */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { pino } from 'pino'
import { migrate } from '../../db/migrate.ts'
import { startFault } from '../../db/process/shutdown.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { startDatabase } from '../../db/start.ts'
import { adminCli } from '../support/admin.ts'
import { emptyDatabase, testDatabase } from '../support/database.ts'
import { connected, LONG_COPY, withOneMore } from '../support/migrations.ts'
import t from '../support/tap.ts'

t.test('only the first run loads the default catalog', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  t.equal((await cli.json(['plan', 'list'])).plans.length, 4)
  await cli.json(['plan', 'load', '-'], { input: '{"plans":[]}' })
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line))
  t.strictSame(lines, [])
  t.strictSame(await cli.json(['plan', 'list']), { plans: [] })
})

t.test('prints the grants that a role needs to create tables', async (t) => {
  const { url } = await emptyDatabase(t)
  const admin = await connected(t, url)
  const name = new URL(url).pathname.slice(1)
  const role = `${name}_role`
  await admin.query(`create role ${role} login password 'x'`)
  t.teardown(async () => await admin.query(`drop owned by ${role} cascade; drop role ${role}`))
  const own = Object.assign(new URL(url), { username: role, password: 'x' }).href
  const said = await migrate(own).then(String, (error: unknown) => startFault(error) ?? String(error))
  const grants = `grant create on schema public to ${role}; grant create on database ${name} to ${role}`
  t.equal(said, `cannot start: permission denied for schema public: ${grants}`)
  await admin.query(grants)
  await migrate(own)
  t.match((await admin.query('select from plans')).rowCount, 4)
})

t.test('the next run loads the catalog after a kill', async (t) => {
  const { url } = await testDatabase(t)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('delete from plans; delete from schema_migrations where number = 0')
  await client.end()
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line))
  t.strictSame(lines, ['loaded the default plan catalog'])
})

t.test('rejects a database of another history', async (t) => {
  const { url } = await testDatabase(t)
  const client = await connected(t, url)
  const { directory } = await withOneMore(t, '-- makes a table\ncreate table extra (id integer);\n')
  const others: [change: string, words: RegExp][] = [
    ["file = '0004-emails.sql'", /made by another version's schema \(its 0004-emails.sql is not this/],
    ["digest = 'another'", /made by another version's schema \(its 0004-messages.sql is not this/],
  ]
  for (const [change, words] of others) {
    await client.query(`begin; update schema_migrations set ${change} where number = 4; commit`)
    for (const said of [
      await migrate(url, () => {}, { directory }).then(String, ({ message }: Error) => message),
      await adminCli({ DATABASE_URL: url }).fault(['plan', 'list']),
      await startDatabase({ DATABASE_URL: url }, { size: 1 }, pino({ level: 'silent' })).then(
        () => 'it starts',
        ({ message }: Error) => message.split('DATABASE_URL: ')[1] ?? message,
      ),
    ]) {
      t.match(said, words)
      t.match(said, /use an empty database \(with `npm start`, delete \.data\)/)
    }
    const files = await migrationFiles()
    await client.query('update schema_migrations set file = $1, digest = $2 where number = 4', [
      files[3]?.file,
      files[3]?.digest,
    ])
  }
  t.equal((await client.query("select to_regclass('extra') as made")).rows[0].made, null)
})

t.test('runs a marked file outside a transaction', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(
    t,
    `-- outside a transaction: builds an index while teams are being made
drop index concurrently if exists teams_by_name;

create index concurrently teams_by_name on teams (name);
`,
  )
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  await migrate(url, log, { directory })
  await migrate(url, log, { directory })
  t.strictSame(lines, [`applied ${file}`])
  const client = await connected(t, url)
  const { rows } = await client.query(
    "select indisvalid from pg_index where indexrelid = 'teams_by_name'::regclass",
  )
  t.strictSame(rows, [{ indisvalid: true }])
})

t.test("ignores the role's statement timeout for migrations", async (t) => {
  const { url } = await testDatabase(t)
  const bounded = `${url}?options=-c%20statement_timeout%3D500`
  for (const first of ['-- takes a while', '-- outside a transaction: takes a while']) {
    const { directory, file } = await withOneMore(t, `${first}\n\nselect pg_sleep(0.7);\n`)
    const lines: string[] = []
    await migrate(bounded, (line) => lines.push(line), { directory })
    t.strictSame(lines, [`applied ${file}`], first)
    const client = await connected(t, url)
    await client.query('delete from schema_migrations where file = $1', [file])
  }
})

t.test("ignores the role's statement timeout for queue indexes", async (t) => {
  const { url } = await testDatabase(t)
  const other = await connected(t, url)
  const { rows } = await other.query<{ name: string }>(
    "select min(table_name) || '_busy' as name from pgboss.queue",
  )
  const name = `pgboss.${rows[0]?.name}`
  await other.query(`drop index ${name}`)
  // The index can't be completed before transactions that store jobs have ended.
  const table = name.replace(/_busy$/, '')
  await other.query(`begin; lock table ${table} in row exclusive mode`)
  const migrated = migrate(`${url}?options=-c%20statement_timeout%3D500`)
  const watch = await connected(t, url)
  const builds = async () =>
    (
      await watch.query(`
        select from pg_stat_activity
        where datname = current_database() and query like 'create index concurrently%'
          and query_start < now() - interval '0.7 s'`)
    ).rowCount
  while (!(await Promise.race([migrated.then(() => 1), builds()]))) await sleep(50)
  await other.query('rollback')
  await migrated
  const index = await watch.query('select indisvalid from pg_index where indexrelid = $1::regclass', [name])
  t.strictSame(index.rows, [{ indisvalid: true }])
})

t.test('concurrent migrations run one after the other', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(t, '-- makes a table\ncreate table extra (id integer);\n')
  const lines: string[] = []
  await Promise.all([1, 2, 3].map(() => migrate(url, (line) => void lines.push(line), { directory })))
  t.strictSame(lines, [`applied ${file}`])
})

t.test('a killed migration stops, and the next run resumes', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(t, LONG_COPY)
  const killed = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { migrate } from ${JSON.stringify(import.meta.resolve('../../db/migrate.ts'))}
       await migrate(process.env.DATABASE_URL, (line) => console.log(line), { directory: new URL(${JSON.stringify(directory.href)}) })`,
    ],
    { env: { ...process.env, DATABASE_URL: url }, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let said = ''
  for await (const chunk of killed.stdout) {
    said += chunk
    if (said.includes('copied 2 of 10')) killed.kill('SIGKILL')
  }
  t.notMatch(said, /copied 10/, 'it was killed half way')
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line), { directory })
  t.strictSame(lines, ['copied 10 of 10', `applied ${file}`], 'the second row is not copied again')
})
