/** The release step: what it does once, and what it leaves alone at every later deploy. */
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { pino } from 'pino'
import { migrate } from '../../db/migrate.ts'
import { startFault } from '../../db/process/shutdown.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { startDatabase } from '../../db/start.ts'
import { adminCli } from '../support/admin.ts'
import { emptyDatabase, testDatabase } from '../support/database.ts'
import t, { type Test } from '../support/tap.ts'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')

/** A connection of the test's own. */
async function connected(t: Test, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** The migrations of today and one more with this text. */
async function withOneMore(t: Test, text: string): Promise<{ directory: URL; file: string }> {
  const folder = t.testdir()
  await cp(MIGRATIONS, folder, { recursive: true })
  const number = String((await migrationFiles()).length + 1).padStart(4, '0')
  await writeFile(join(folder, `${number}-one-more.sql`), text)
  return { directory: pathToFileURL(`${folder}/`), file: `${number}-one-more.sql` }
}

t.test('the default catalog is loaded by the first run only: an emptied one stays empty', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  t.equal((await cli.json(['plan', 'list'])).plans.length, 4)
  await cli.json(['plan', 'load', '-'], { input: '{"plans":[]}' })
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line))
  t.strictSame(lines, [])
  t.strictSame(await cli.json(['plan', 'list']), { plans: [] })
})

t.test('a role that may not make tables hears what to grant it, and with that it migrates', async (t) => {
  const { url } = await emptyDatabase(t)
  const admin = await connected(t, url)
  const name = new URL(url).pathname.slice(1)
  const role = `${name}_role`
  await admin.query(`create role ${role} login password 'x'`)
  t.teardown(async () => {
    await admin.query(`drop owned by ${role} cascade; drop role ${role}`)
  })
  const own = Object.assign(new URL(url), { username: role, password: 'x' }).href
  const said = await migrate(own).then(String, (error: unknown) => startFault(error) ?? String(error))
  const grants = `grant create on schema public to ${role}; grant create on database ${name} to ${role}`
  t.equal(said, `cannot start, permission denied for schema public: ${grants}`)
  await admin.query(grants)
  await migrate(own)
  t.match((await admin.query('select from plans')).rowCount, 4)
})

t.test('a first run that was killed before the catalog is made good by the next', async (t) => {
  const { url } = await testDatabase(t)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('delete from plans; delete from schema_migrations where number = 0')
  await client.end()
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line))
  t.strictSame(lines, ['loaded the default plan catalog'])
})

t.test(
  'a database of another history is left as it is, and each way in says so and what to do',
  async (t) => {
    const { url } = await testDatabase(t)
    const client = await connected(t, url)
    const { directory } = await withOneMore(t, '-- makes a table\ncreate table extra (id integer);\n')
    const others: [change: string, words: RegExp][] = [
      [
        "file = '0008-others.sql'",
        /^the database has another history \(0008-others.sql where this version has 0008-/,
      ],
      [
        "digest = 'another'",
        /^the database has another history \(its 0008-\S+ has other contents than this version's\)/,
      ],
    ]
    for (const [change, words] of others) {
      await client.query(`begin; update schema_migrations set ${change} where number = 8; commit`)
      for (const said of [
        await migrate(url, () => {}, { directory }).then(String, ({ message }: Error) => message),
        await adminCli({ DATABASE_URL: url }).fault(['plan', 'list']),
        await startDatabase({ DATABASE_URL: url }, { size: 1 }, pino({ level: 'silent' })).then(
          () => 'it starts',
          ({ message }: Error) => message.split('DATABASE_URL: ')[1] ?? message,
        ),
      ]) {
        t.match(said, words)
        t.match(said, /go back to the version that has migrated it, or use another database/)
      }
      const files = await migrationFiles()
      await client.query('update schema_migrations set file = $1, digest = $2 where number = 8', [
        files[7]?.file,
        files[7]?.digest,
      ])
    }
    t.equal((await client.query("select to_regclass('extra') as made")).rows[0].made, null)
  },
)

t.test('what was applied before digests were kept takes them once, without a word', async (t) => {
  const { url } = await testDatabase(t)
  const client = await connected(t, url)
  await client.query('alter table schema_migrations drop column digest')
  const { database } = await startDatabase({ DATABASE_URL: url }, { size: 1 }, pino({ level: 'silent' }))
  await database.end()
  const said: string[] = []
  await migrate(url, (line) => said.push(line))
  t.strictSame(said, [])
  const { rows } = await client.query('select digest from schema_migrations where number > 0 order by number')
  t.strictSame(
    rows,
    (await migrationFiles()).map(({ digest }) => ({ digest })),
  )
})

t.test('a file that says so runs outside of a transaction, statement by statement', async (t) => {
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

t.test(
  'a file that waits for a lock lets others pass, tries again, and applies once it is free',
  async (t) => {
    const { url } = await testDatabase(t)
    const { directory, file } = await withOneMore(
      t,
      '-- adds a column\nalter table teams add column extra integer;\n',
    )
    const other = await connected(t, url)
    await other.query('begin; lock table teams in access share mode')
    const lines: string[] = []
    const waits = Promise.withResolvers<void>()
    const log = (line: string): void => {
      lines.push(line)
      waits.resolve()
    }
    const migrated = migrate(url, log, { directory, lockWait: 50 })
    await waits.promise
    await other.query('rollback')
    await migrated
    t.match(lines[0], new RegExp(`^${file} waits for a lock`))
    t.equal(lines.at(-1), `applied ${file}`)
  },
)

t.test('a lock that is never given ends it with the file’s name, and nothing half done', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(
    t,
    '-- adds a column\nalter table teams add column extra integer;\n',
  )
  const other = await connected(t, url)
  await other.query('begin; lock table teams in access share mode')
  await t.rejects(
    migrate(url, () => {}, { directory, lockWait: 1 }),
    {
      message: new RegExp(`^${file} was not applied: another session keeps a lock`),
    },
  )
})

t.test('a process that comes while another one migrates waits for its turn', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(t, '-- makes a table\ncreate table extra (id integer);\n')
  const lines: string[] = []
  await Promise.all([1, 2, 3].map(() => migrate(url, (line) => void lines.push(line), { directory })))
  t.strictSame(lines, [`applied ${file}`])
})
