/** The release step: what it does once, and what it leaves alone at every later deploy. */
import { Client } from 'pg'
import t from 'tap'
import { migrate } from '../../db/migrate.ts'
import { adminCli } from '../support/admin.ts'
import { testDatabase } from '../support/database.ts'

t.test('the default catalog is loaded by the first run only: an emptied one stays empty', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  t.equal((await cli.json(['plan', 'list'])).plans.length, 4)
  await cli.json(['plan', 'load', '-'], { input: '{"plans":[]}' })
  const told: string[] = []
  await migrate(url, (line) => told.push(line))
  t.strictSame(told, [])
  t.strictSame(await cli.json(['plan', 'list']), { plans: [] })
})

t.test('a first run that was killed before the catalog is made good by the next', async (t) => {
  const { url } = await testDatabase(t)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('delete from plans; delete from schema_migrations where number = 0')
  await client.end()
  const told: string[] = []
  await migrate(url, (line) => told.push(line))
  t.strictSame(told, ['loaded the default plan catalog'])
})
