/** The allowed imports between folders, no circles, and no unused exports. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, type Source, sources, withoutComments } from './support/sources.ts'
import t from './support/tap.ts'

const all = await sources('api', 'workers', 'db')
const breaking = (holds: (source: Source) => boolean): string[] =>
  all.filter((source) => !holds(source)).map((source) => source.file)
const within = (folders: string[]) => (name: string) =>
  !/^(api|workers|db|test)\//.test(name) || folders.some((folder) => name.startsWith(`${folder}/`))

/** Returns everything reachable from a name. It includes the name itself if it is in a cycle. */
function reachedFrom(from: string, leadsTo: ReadonlyMap<string, Iterable<string>>, seen = new Set<string>()) {
  for (const next of leadsTo.get(from) ?? []) {
    if (seen.has(next)) continue
    seen.add(next)
    reachedFrom(next, leadsTo, seen)
  }
  return seen
}

t.test('api and workers import db, never each other', async (t) => {
  const allowed: Record<string, string[]> = { api: ['api', 'db'], workers: ['workers', 'db'], db: ['db'] }
  const others = breaking(({ file, imports }) =>
    imports.every(within(allowed[file.split('/')[0] ?? ''] ?? [])),
  )
  t.strictSame(others, [])
})

t.test('a process starts without modules that many never use', async (t) => {
  const loaded = new Map(all.map((source) => [source.file, source.loaded]))
  const web = reachedFrom('api/main.ts', loaded)
  t.ok(web.has('koa') && web.has('slonik'))
  const late = [
    ...'api/dashboard/server/dispatch.ts api/dashboard/routes.ts openid-client piscina'.split(' '),
    ...'nodemailer pg-boss'.split(' '),
  ]
  t.equal(late.filter((name) => web.has(name)).join(), '')
  const thread = reachedFrom('api/v1/parser-thread.ts', loaded)
  t.ok(thread.has('yup'))
  const banned = ['slonik', 'pg', 'pg-boss', 'koa'].filter((name) => thread.has(name)).join()
  t.equal(banned, '', 'files with bodies of the API import no module with SQL, not even for a constant')
  const worker = reachedFrom('workers/main.ts', loaded)
  t.ok(worker.has('pg-boss'))
  const providers = ['@aws-sdk/client-sesv2', 'nodemailer', 'koa']
  t.equal(providers.filter((name) => worker.has(name)).join(), '')
})

/** Returns the modules of a folder, which are its folders and top-level files, with their imports. */
function roomsOf(place: string): Map<string, Set<string>> {
  const roomOf = (file: string): string => file.slice(place.length + 1).split('/')[0] ?? ''
  const inside = (name: string): boolean => name.startsWith(`${place}/`)
  const rooms = new Map<string, Set<string>>()
  for (const { file, imports } of all.filter(({ file }) => inside(file))) {
    const room = roomOf(file)
    const others = imports.filter(inside).map(roomOf)
    rooms.set(room, new Set([...(rooms.get(room) ?? []), ...others.filter((other) => other !== room)]))
  }
  return rooms
}

/** Returns the modules that reach themselves. */
const circling = (rooms: ReadonlyMap<string, ReadonlySet<string>>): string[] =>
  [...rooms.keys()].filter((room) => reachedFrom(room, rooms).has(room))

const PLACES = [
  ...'api api/http api/dashboard workers workers/providers db db/accounts db/audience'.split(' '),
  ...'db/channels db/content db/delivery db/stats db/messages db/maintenance'.split(' '),
]

for (const place of PLACES) {
  t.test(`the modules of ${place} form no circle, types included`, async (t) => {
    const rooms = roomsOf(place)
    t.ok(rooms.size > 1)
    t.strictSame(circling(rooms), [])
  })
}

t.test('a folder of db only imports from those above in DEVELOPING.md', async (t) => {
  const page = await readFile(join(ROOT, 'db/DEVELOPING.md'), 'utf8')
  const order = [...page.matchAll(/^\| `(\w+)\/` \|/gm)].map(([, folder = '']) => folder)
  const folderOf = (name: string): string => /^db\/(\w+)\//.exec(name)?.[1] ?? ''
  const isAbove = (file: string) => (name: string) =>
    order.indexOf(folderOf(name)) <= order.indexOf(folderOf(file))
  const sorted = all.filter(({ file }) => folderOf(file) !== '')
  t.strictSame([...new Set(sorted.map(({ file }) => folderOf(file)))].sort(), order.toSorted())
  const others = sorted.filter(({ file, imports }) => !imports.every(isAbove(file))).map(({ file }) => file)
  t.strictSame(others, [])
})

t.test('no files form a circle, types included', async (t) => {
  t.strictSame(circling(new Map(all.map(({ file, imports }) => [file, new Set(imports)]))), [])
})

t.test('only db/admin imports itself, only its context db/dev', async (t) => {
  t.strictSame(
    breaking(
      ({ file, imports }) =>
        file.startsWith('db/admin/') || !imports.some((name) => name.startsWith('db/admin/')),
    ),
    [],
  )
  t.strictSame(
    breaking(
      ({ file, imports }) =>
        file.startsWith('db/dev/') ||
        file === 'db/admin/context.ts' ||
        !imports.some((name) => name.startsWith('db/dev/')),
    ),
    [],
  )
})

/** Exports that only tests and `npm start` use, each for a reason. */
const FOR_TESTS: Readonly<Record<string, string>> = {
  // Lists that tests iterate over, and programs that they run.
  'api/app.ts': 'ROUTES',
  'api/docs/webhooks.ts': 'webhookReference',
  'db/stats/fleet/exposition.ts': 'GAUGES',
  'db/stats/fleet/fleet.sql.ts': 'STORED_GAUGES',
  // Assumptions of statements, checked against the installed version.
  'db/queue/pgboss.sql.ts': 'STATES COLUMNS',
  'workers/delivery/breaker.ts': 'createBreaker',
  // Startup of processes, databases and logs.
  'db/admin/main.ts': 'main',
  'db/dev/place.ts': 'unprivilegedAccount',
  'db/dev/postgres.ts': 'startPostgres acquireName',
  'db/dev/used.ts': 'demoFile storePort storeGraphApi',
  'db/migrate.ts': 'migrate',
  'db/process/log.ts': 'logOptions',
  'workers/adapters.ts': 'beside',
  // Pure rules with many cases, and behavior that otherwise only shows after a minute or in plans.
  'db/audience/contacts/contacts.sql.ts': 'contactPage',
  'db/delivery/senders/rate-limit.ts': 'reserve',
  'db/stats/fleet/scale.ts': 'computeScale',
  'db/messages/broadcasts/auto-pause.ts': 'autoPauseReason',
  'db/process/http-client.ts': 'limitConnecting',
}

const importersOf = (some: readonly Source[]) =>
  Map.groupBy(
    some.flatMap(({ imports, text }) => imports.map((from) => ({ from, text: withoutComments(text) }))),
    ({ from }) => from,
  )

/** What files export that `others` never name, by their file. @param exported finds a name in its first group. */
function unusedBy(others: readonly Source[], exported: RegExp): Record<string, string> {
  const importers = importersOf(others)
  const unused = all.map(({ file, text }) => {
    const alone = [...text.matchAll(exported)]
      .map(([, name]) => name ?? '')
      .filter((name) => !importers.get(file)?.some((other) => new RegExp(`\\b${name}\\b`).test(other.text)))
    return [file, alone.join(' ')]
  })
  return Object.fromEntries(unused.filter(([, names]) => names !== ''))
}
t.test('every export is used by another module of the service', async (t) => {
  t.strictSame(unusedBy(all, /^export (?:async )?(?:function\*?|const|class) (\w+)/gm), FOR_TESTS)
})

t.test('another module or a test uses each exported type', async (t) => {
  t.strictSame(unusedBy([...all, ...(await sources('test'))], /^export type (\w+)/gm), {})
})

/**
 * Exports that every module of a kind may have under the same name: the texts of its errors, or an interface
 * of channels.
 */
const SAME_IN_EACH = ['TEXTS', 'higherStatus', 'statusOfEvent', 'verbs']
t.test('an exported name of db means one thing there', async (t) => {
  const names = all
    .filter(({ file }) => file.startsWith('db/'))
    .flatMap(({ text }) =>
      [...text.matchAll(/^export (?:async )?(?:function\*?|const|class|type) (\w+)/gm)].map(
        ([, name]) => name,
      ),
    )
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  t.strictSame([...twice].sort(), SAME_IN_EACH)
})

t.test('pure modules import no I/O and no clock', async (t) => {
  const pure = /^db\/text\/|\/(status|bucket|period|content)\.ts$/
  const impure = /^slonik|^pg|config\.ts$|pool\.ts$|\.sql\.ts$/
  t.strictSame(
    breaking(
      ({ file, text, values }) =>
        !pure.test(file) ||
        (!values.some((name) => impure.test(name)) && !/new Date\(\)|Date\.now/.test(text)),
    ),
    [],
  )
})

t.test('npm start works without the optional packages', async (t) => {
  const tools = JSON.parse(await readFile(join(ROOT, 'test/tools/package.json'), 'utf8')).optionalDependencies
  const values = new Map([...all, ...(await sources('test'))].map(({ file, values }) => [file, values]))
  const processes = [
    'test/start.ts',
    'test/sandbox/main.ts',
    'api/main.ts',
    'workers/main.ts',
    'db/admin/main.ts',
  ]
  const started = new Set(processes.flatMap((file) => [...reachedFrom(file, values)]))
  const packages = [...started].map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? '')
  t.ok(packages.includes('smtp-server'))
  t.equal(packages.filter((name) => name in tools).join(), '')
  const lock = await readFile(join(ROOT, 'package-lock.json'), 'utf8')
  t.notMatch(lock, '"test/tools/node_modules', 'the tests find each tool')
})
