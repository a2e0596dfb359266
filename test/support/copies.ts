/** Copies of a test's database, as a restore makes them, dropped when the test ends. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { databaseUrl, testServer } from './database.ts'

async function run(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    for (const each of statements) await client.query(each)
  } finally {
    await client.end()
  }
}

/**
 * Copies the database at `url`, and closes its connections for that. Those of its processes must be closed
 * already. @returns the copy's URL.
 */
export async function copyDatabase(t: { teardown(drop: () => Promise<void>): unknown }, url: string) {
  const { url: server, prefix } = testServer()
  const name = `${prefix}_${randomBytes(6).toString('hex')}`
  t.teardown(() => run(server, [`drop database if exists "${name}" with (force)`]))
  const original = new URL(url).pathname.slice(1)
  await run(server, [
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${original}'`,
    `create database "${name}" template "${original}"`,
  ])
  return databaseUrl(server, name)
}
