/** The release step: its effect in the first deployment, and the data that later ones leave unchanged. */
import { spawn } from 'node:child_process'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { pino } from 'pino'
import { migrate } from '../../db/migrate.ts'
import { startFault } from '../../db/process/shutdown.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { startDatabase } from '../../db/start.ts'
import { adminCli } from '../support/admin.ts'
import { emptyDatabase, testDatabase } from '../support/database.ts'
import { ownServer } from '../support/own-server.ts'
import { anEmail, world } from '../support/service.ts'
import t, { type Test } from '../support/tap.ts'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')

/** Opens a connection for the test. */
async function connected(t: Test, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** The current migrations and one more with this text. */
async function withOneMore(t: Test, text: string): Promise<{ directory: URL; file: string }> {
  const folder = t.testdir()
  await cp(MIGRATIONS, folder, { recursive: true })
  const number = String((await migrationFiles()).length + 1).padStart(4, '0')
  await writeFile(join(folder, `${number}-one-more.sql`), text)
  return { directory: pathToFileURL(`${folder}/`), file: `${number}-one-more.sql` }
}

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
  t.equal(said, `cannot start, permission denied for schema public: ${grants}`)
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

t.test('a file that waits for a lock applies once', async (t) => {
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
  t.match(lines[0], new RegExp(`^${file} is waiting for a lock`))
  t.equal(lines.at(-1), `applied ${file}`)
})

t.test('cancels a blocking autovacuum before the last attempts', async (t) => {
  // It would run for minutes, and is cancelled for a session that has waited three seconds.
  const slow = {
    autovacuum: 'on',
    autovacuum_naptime: '1s',
    autovacuum_vacuum_cost_delay: '100ms',
    deadlock_timeout: '3s',
  }
  const { url } = await ownServer(t, { ...slow, autovacuum_vacuum_cost_limit: '1' })
  const add = '-- adds a column\nalter table audit_entries add column extra integer;\n'
  const { directory, file } = await withOneMore(t, add)
  const other = await connected(t, url)
  const locks = async (isGranted: boolean): Promise<boolean> => {
    const { rows } = await other.query(
      `select from pg_locks where relation = 'audit_entries'::regclass and mode = 'ShareUpdateExclusiveLock' and granted = $1`,
      [isGranted],
    )
    return rows.length > 0
  }
  await other.query(`
    alter table audit_entries set (autovacuum_vacuum_insert_threshold = 1);
    insert into audit_entries (id, actor, action, subject, detail, created_at)
    select gen_random_uuid(), 'cli', 'made', repeat('x', 400), '', now() from generate_series(1, 5000)`)
  while (!(await locks(true))) await sleep(50)
  const lines: string[] = []
  let isOver = false
  const migrated = migrate(url, (line) => lines.push(line), { directory, lockWait: 50, tries: 4 }).finally(
    () => {
      isOver = true
    },
  )
  while (!isOver && !(await locks(false))) await sleep(10)
  await other.query("update audit_entries set subject = 'y' where id is null")
  t.ok(await locks(false), 'a send passes while the migration waits')
  await migrated
  t.strictSame(lines, [`${file} is waiting for a lock held by another session`, `applied ${file}`])
})

t.test('names the file if a lock is never released', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(
    t,
    '-- adds a column\nalter table teams add column extra integer;\n',
  )
  const other = await connected(t, url)
  await other.query('begin; lock table teams in access share mode')
  await t.rejects(
    migrate(url, () => {}, { directory, lockWait: 1, tries: 1 }),
    { message: new RegExp(`^Could not apply ${file}: timed out waiting for locks`) },
  )
})

t.test('concurrent migrations run one after the other', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(t, '-- makes a table\ncreate table extra (id integer);\n')
  const lines: string[] = []
  await Promise.all([1, 2, 3].map(() => migrate(url, (line) => void lines.push(line), { directory })))
  t.strictSame(lines, [`applied ${file}`])
})

/** Locks the tables of an accept in the wrong order. */
const AGAINST_ACCEPTS = `-- adds a column to each table of an accept
alter table accepted_emails add column extra integer;
alter table allowances add column extra integer;
`

t.test('a file that deadlocks with an accept is retried', async (t) => {
  const { url } = await testDatabase(t)
  const { directory, file } = await withOneMore(t, AGAINST_ACCEPTS)
  const accept = await connected(t, url)
  const watch = await connected(t, url)
  // After this timeout, a session checks for deadlocks and would be the victim. So the victim is never the
  // accept.
  await accept.query("set deadlock_timeout = '1min'")
  await accept.query('begin; lock table allowances in row exclusive mode')
  const lines: string[] = []
  const migrated = migrate(url, (line) => lines.push(line), { directory, lockWait: 10_000 })
  const waits = async () =>
    // Databases of other tests are copies of the same one, and their tables have the same OIDs.
    (
      await watch.query(`
      select from pg_locks l join pg_database d on d.oid = l.database
      where not granted and relation = 'allowances'::regclass and datname = current_database()`)
    ).rowCount
  while (!(await waits())) await sleep(10)
  await accept.query('lock table accepted_emails in row exclusive mode; commit')
  await migrated
  t.strictSame(lines, [`${file} is waiting for a lock held by another session`, `applied ${file}`])
})

/** Copies ten rows in separate transactions, and continues after the last one when called again. */
const LONG_COPY = `-- outside a transaction: copies in batches, and says how far it has come
create table if not exists copied (id integer primary key);

create or replace procedure copy_all() language plpgsql as $$
begin
  if exists (
    select from pg_stat_activity
    where datname = current_database() and query like 'call copy_all%' and pid <> pg_backend_pid())
  then
    raise exception 'two copies at once';
  end if;
  for row_id in (select coalesce(max(id), 0) + 1 from copied) .. 10 loop
    insert into copied (id) values (row_id);
    -- In between it is silent: a server that writes nothing does not notice that nobody listens.
    if row_id in (2, 10) then raise info 'copied % of 10', row_id; end if;
    commit;
    perform pg_sleep(0.2);
  end loop;
end $$;

call copy_all();

drop procedure copy_all;
`

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

/** One migration of each kind. */
const KINDS = [
  '-- adds a column, with the locks in the order in which accepts take them\nlock table allowances, accepted_emails in access exclusive mode;\nalter table accepted_emails add column extra integer;\nalter table allowances add column extra integer;\n',
  '-- outside a transaction: adds an index\ndrop index concurrently if exists extra_index;\n\ncreate index concurrently extra_index on accepted_emails (team_id, subject);\n',
  AGAINST_ACCEPTS.replaceAll('extra', 'another'),
  LONG_COPY,
]

t.test('accepts continue while migrations of each kind run', async (t) => {
  const { url, call, key } = await world(t, { team: { rate: 10_000 } })
  const sending = new AbortController()
  const statuses: number[] = []
  const client = async () => {
    while (!sending.signal.aborted)
      statuses.push((await call('POST', '/v1/emails', { key, body: anEmail({}) })).status)
  }
  const clients = [client(), client(), client()]
  for (const text of KINDS) {
    const { directory } = await withOneMore(t, text)
    await migrate(url, () => {}, { directory })
    // The next kind gets the same number.
    await (await connected(t, url)).query('delete from schema_migrations where number = $1', [
      (await migrationFiles()).length + 1,
    ])
  }
  sending.abort()
  await Promise.all(clients)
  t.strictSame([...new Set(statuses)], [201])
})
