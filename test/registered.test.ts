/** Entries of one list are in the others: jobs and their handlers, settings, routes and their access, codes. */
import { glob, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROUTES } from '../api/app.ts'
import { STATUS } from '../api/http/errors.ts'
import { BODIES } from '../api/v1/bodies.ts'
import { V1_ROUTES } from '../api/v1/routes.ts'
import { CODES } from '../db/errors.ts'
import { deadLetterQueue, JOBS, type JobName, SCHEDULES } from '../db/queue/jobs.ts'
import { JOB_HANDLERS, SCHEDULED_JOBS } from '../workers/registry.ts'
import { ROOT } from './support/sources.ts'
import t from './support/tap.ts'

t.test('every job has a handler and a dead letter queue', async (t) => {
  t.strictSame(Object.keys(JOB_HANDLERS).sort(), Object.keys(JOBS).sort())
  t.strictSame(Object.keys(SCHEDULED_JOBS).sort(), Object.keys(SCHEDULES).sort())
  for (const job of Object.keys(JOBS)) t.equal(deadLetterQueue(job as JobName), `${job}-dead`)
  const lists = ['workers/jobs', 'workers/channels'].map((folder) => readdir(join(ROOT, folder)))
  const files = (await Promise.all(lists)).flat().map((file) => file.replace('.ts', ''))
  const named = [...Object.keys(JOBS), ...Object.keys(SCHEDULES)]
  t.equal(named.filter((name) => !files.includes(name)).join(), '', 'a job’s file is its name')
  const jobs = await readdir(join(ROOT, 'workers/jobs'))
  t.equal(jobs.filter((file) => !named.includes(file.replace('.ts', ''))).join(), '')
})

t.test('what depends on the current minute runs every minute', async (t) => {
  for (const name of ['count-stats', 'review-suppressions'] as const)
    t.equal(SCHEDULES[name].cron, '* * * * *', name)
})

t.test('PROVIDERS.md names where to register for feedback loops', async (t) => {
  const page = await readFile(join(ROOT, 'workers/PROVIDERS.md'), 'utf8')
  const section = page.split('### Feedback loops')[1]?.split('\n#')[0]
  for (const program of [
    'Sender Hub',
    'SNDS and JMRP',
    'Validity',
    'Postmaster Tools',
    'fbl@RETURN_PATH_DOMAIN',
  ])
    t.match(section, program)
})

t.test('every setting is in db/README.md or db/RETENTION.md', async (t) => {
  const files = ['api/config.ts', 'workers/config.ts', 'db/process/config.ts']
  const declared = await Array.fromAsync(glob('workers/providers/*/declared.ts', { cwd: ROOT }))
  const read = (file: string) => readFile(join(ROOT, file), 'utf8')
  const sources = (await Promise.all([...files, ...declared].map(read))).join('\n')
  const pages = (await Promise.all(['db/README.md', 'db/RETENTION.md'].map(read))).join('\n')
  const names = [...sources.matchAll(/^ {2,4}([A-Z][A-Z\d_]+):/gm)].map(([, name = '']) => name)
  t.ok(names.length > 60)
  t.strictSame(
    names.filter((name) => !pages.includes(`\`${name}\``)),
    [],
  )
})

t.test('every route declares who may call it', async (t) => {
  const open = ROUTES.filter(({ access }) => access === 'public').map(
    ({ method, path }) => `${method} ${path}`,
  )
  t.strictSame(
    open.filter(
      (route) =>
        !/^(GET|POST) \/($|health|ready|docs$|docs\/:guide\.md$|llms\.txt$|(openapi|postman)\.json$|metrics$|scale$|hirefire\/|hooks\/|u\/|v1\/plans)/.test(
          route,
        ),
    ),
    [],
  )
  for (const { method, path, access } of ROUTES) {
    if (access !== 'public') t.ok(access.kinds.includes('key'), `${method} ${path}`)
  }
})

t.test('every route under /v1 describes itself', async (t) => {
  t.strictSame(
    V1_ROUTES.filter(({ about }) => about === undefined).map(({ method, path }) => `${method} ${path}`),
    [],
  )
})

t.test('every code has a status', async (t) => {
  t.strictSame(Object.keys(STATUS).sort(), [...CODES].sort())
})

t.test('the parser’s thread knows every route with a body', async (t) => {
  const declared = V1_ROUTES.flatMap(({ method, path, body }) => (body ? [[`${method} ${path}`, body]] : []))
  t.strictSame(
    Object.keys(BODIES).sort(),
    declared.map(([route]) => route).sort(),
    'BODIES in api/v1/bodies.ts lists each route with a body',
  )
  for (const [route, body] of declared) t.equal(BODIES[String(route)], body, String(route))
})
