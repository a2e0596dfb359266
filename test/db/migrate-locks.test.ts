/** The release step waits for locks, and lets other transactions continue. */
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate } from '../../db/migrate.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { testDatabase } from '../support/database.ts'
import { connected, LONG_COPY, withOneMore } from '../support/migrations.ts'
import { ownServer } from '../support/own-server.ts'
import { anEmail, world } from '../support/service.ts'
import t, { type Test } from '../support/tap.ts'

/** Adds a migration of the table of teams, which another session locks. */
async function withLockedTeams(t: Test) {
  const { url } = await testDatabase(t)
  const text = '-- adds a column\nalter table teams add column extra integer;\n'
  const added = await withOneMore(t, text)
  const other = await connected(t, url)
  await other.query('begin; lock table teams in access share mode')
  return { url, other, ...added }
}

t.test('a file that waits for a lock applies once', async (t) => {
  const { url, other, directory, file } = await withLockedTeams(t)
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
  // It is cancelled for a session that has waited three seconds.
  const settings = { autovacuum: 'on', autovacuum_naptime: '1s', deadlock_timeout: '3s' }
  const { url } = await ownServer(t, settings)
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
  // Only this table's vacuum is slow. Other tables may be vacuumed first.
  await other.query(`
    alter table audit_entries set (
      autovacuum_vacuum_insert_threshold = 1, autovacuum_vacuum_cost_limit = 1, autovacuum_vacuum_cost_delay = 100);
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
  const { url, directory, file } = await withLockedTeams(t)
  await t.rejects(
    migrate(url, () => {}, { directory, lockWait: 1, tries: 1 }),
    { message: new RegExp(`^Could not apply ${file}: timed out waiting for locks`) },
  )
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
