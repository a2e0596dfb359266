/**
 * The version after this one, as an upgrade meets it: these sources with a migration, a queue, a field of a job's
 * payload and a kind of background job more.
 */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bareEnvironment } from './environment.ts'
import { MODULES, ROOT } from './program.ts'

/** Added to a file, after the words that it has once. */
type Addition = { file: string; after: string; more: string }

const MIGRATION = `-- What the next version needs: a table and a column more.
create table next_things (id uuid primary key);
alter table teams add column next_word text;
`

const ADDITIONS: readonly Addition[] = [
  {
    file: 'db/queue/jobs.ts',
    after: 'const singleRef = emailRef.shape({',
    more: ' needs_next: boolean().optional(),',
  },
  {
    file: 'db/queue/jobs.ts',
    after: 'export const JOBS = {',
    more: `
  'next-thing': {
    payload: checkRef,
    id: (payload: InferType<typeof checkRef>) => payload.check_id,
    options: { retryLimit: 2, retryDelay: 2, expireInSeconds: 60, heartbeatSeconds: 10, partition: false },
  },`,
  },
  {
    file: 'workers/registry.ts',
    after: 'export const HANDLERS: { [J in JobName]: Registration<J> } = {',
    more: `
  'next-thing': {
    handle: ({ jobs, settle }, { database }) =>
      database.transaction((tx) => settle(tx, new Map(jobs.map((job) => [job, { end: 'completed' }])))),
    batchSize: 1,
    loops: 1,
  },`,
  },
  {
    file: 'db/messages/emails/accept.ts',
    after: '...{ team_id, email_id },',
    more: ' needs_next: true,',
  },
  {
    file: 'db/upkeep/work/kinds.ts',
    after: 'export const KINDS = {',
    more: `
  'next.work': {
    slice: async () => ({ cursor: null, done: 1, total: 1, result: {} }),
    entry: () => null,
  },`,
  },
]

/** Makes it. @returns where its sources are, and its `release`; both are gone with the test. */
export async function nextVersion(t: { teardown(end: () => Promise<void>): unknown }): Promise<{
  root: string
  release(url: string): Promise<void>
}> {
  const root = await mkdtemp(join(tmpdir(), 'heliograph-next-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  for (const part of ['api', 'db', 'workers', 'package.json'])
    await cp(join(ROOT, part), join(root, part), { recursive: true })
  await symlink(MODULES, join(root, 'node_modules'))
  await writeFile(join(root, 'db/migrations/0007-next.sql'), MIGRATION)
  for (const { file, after, more } of ADDITIONS) {
    const [before = '', rest, ...others] = (await readFile(join(root, file), 'utf8')).split(after)
    if (rest === undefined || others.length > 0) throw new Error(`${file} must say once: ${after}`)
    await writeFile(join(root, file), `${before}${after}${more}${rest}`)
  }
  const release = async (url: string) => {
    const env = { ...bareEnvironment(), DATABASE_URL: url }
    await promisify(execFile)(process.execPath, [join(root, 'db/migrate.ts')], { env })
  }
  return { root, release }
}
