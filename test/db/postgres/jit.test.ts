/**
 * JIT on a server that supports it: how it is turned off for the role, and the logged statement if the role
 * lacks the right.
 */
import { Client } from 'pg'
import { type Logger, pino } from 'pino'
import { sql } from 'slonik'
import { object, string } from 'yup'
import { migrate } from '../../../db/migrate.ts'
import { startDatabase } from '../../../db/start.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/pgbouncer.ts'
import { systemPostgres, systemPostgresMissing } from '../../support/system-postgres.ts'
import t, { type Test } from '../../support/tap.ts'

const missing = systemPostgresMissing()

type Line = { level: number; statement?: string; reason?: string }

/** A log that keeps its lines. */
function keptLog(): { log: Logger; lines: Line[] } {
  const lines: Line[] = []
  return { lines, log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

const aboutJit = (lines: readonly Line[]) => lines.filter(({ statement }) => statement?.includes('jit'))

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const jitOf = async (url: string) => (await query(url, 'show jit'))[0]?.jit

const as = (url: string, username: string, database: string): string =>
  Object.assign(new URL(url), { username, pathname: `/${database}` }).href

const { url: admin } = missing === null ? await systemPostgres(t) : { url: '' }

/** Creates an empty database whose owner isn't a superuser. */
async function ownedDatabase(t: Test) {
  await query(admin, 'create role owner login')
  for (const name of ['messages', 'other']) await query(admin, `create database ${name} owner owner`)
  t.teardown(async () => {
    for (const name of ['messages', 'other']) await query(admin, `drop database ${name} with (force)`)
    await query(admin, 'drop role if exists app; drop role owner')
  })
  return { owner: as(admin, 'owner', 'messages'), other: as(admin, 'owner', 'other') }
}

const migrated = async (url: string): Promise<string[]> => {
  const lines: string[] = []
  await migrate(url, (line) => lines.push(line))
  return lines.filter((line) => line.includes('jit'))
}

/** Starts a process's database. @returns the log lines about JIT, and the setting in the pool's sessions. */
async function started(url: string) {
  const { log, lines } = keptLog()
  const { database } = await startDatabase({ DATABASE_URL: url }, { size: 1 }, log)
  const jit = await database.oneFirst(sql.type(object({ jit: string().defined() }))`show jit`)
  await database.end()
  return { jit, lines: aboutJit(lines) }
}

const OWNERS = 'alter role owner in database messages set jit = off'

t.test('the release turns JIT off for its role', { skip: missing ?? false }, async (t) => {
  const { owner, other } = await ownedDatabase(t)
  t.equal(await jitOf(owner), 'on')
  t.match(await migrated(owner), [new RegExp(OWNERS)])
  t.equal(await jitOf(owner), 'off')
  t.equal(await jitOf(other), 'on', 'the role’s other database')
  t.equal(await jitOf(as(admin, 'heliograph', 'messages')), 'on', 'the database’s other role')
  t.strictSame(await migrated(owner), [], 'once')

  await query(owner, 'alter role owner in database messages set jit = on')
  t.strictSame(await migrated(owner), [], 'an operator’s setting stays')
  t.equal(await jitOf(owner), 'on')
})

t.test('a start turns JIT off for its role', { skip: missing ?? false }, async (t) => {
  const { owner } = await ownedDatabase(t)
  await migrate(owner)
  await query(admin, 'create role app login in role owner')
  const app = as(admin, 'app', 'messages')
  const both = await Promise.all([started(app), started(app)])
  const logged = both.flatMap(({ lines }) => lines).map(({ level, statement }) => ({ level, statement }))
  t.strictSame(logged, [{ level: 30, statement: 'alter role app in database messages set jit = off' }])
  t.equal((await started(app)).jit, 'off')
  t.strictSame((await started(app)).lines, [])
  const first = both.find(({ lines }) => lines.length > 0)
  t.match(first, { jit: 'off' }, 'the pool of the process that did it')
})

t.test('logs the statement for a role without the right', { skip: missing ?? false }, async (t) => {
  const { owner } = await ownedDatabase(t)
  await migrate(owner)
  await query(admin, 'create role app login in role owner; alter role app set role owner')
  const statement = 'alter role app in database messages set jit = off'
  const app = as(admin, 'app', 'messages')
  t.match(await started(app), { jit: 'on', lines: [{ level: 40, statement, reason: /denied/ }] })
  t.match(await migrated(app), [new RegExp(statement)])
  await query(admin, statement)
  t.strictSame(await started(app), { jit: 'off', lines: [] })
})

const poolerMissing = missing ?? (await pgbouncerMissing())

t.test('JIT is turned off through a pooler', { skip: poolerMissing ?? false }, async (t) => {
  const { owner } = await ownedDatabase(t)
  const pooled = await startPgbouncer(t, owner, 'transaction')
  t.match(await migrated(pooled), [new RegExp(OWNERS)])
  t.equal(await jitOf(owner), 'off')
})
