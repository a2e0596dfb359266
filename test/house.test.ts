/** The rules of our house, checked: who imports what, where settings and SQL live, what every key begins with. */
import { access, readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { sql } from 'slonik'
import t from 'tap'
import { array, object, string } from 'yup'
import { ROUTES } from '../api/app.ts'
import { STATUS } from '../api/http/errors.ts'
import { V1_ROUTES } from '../api/v1/routes.ts'
import { CODES } from '../db/errors.ts'
import { openDatabase } from '../db/postgres/pool.ts'
import { deadLetterOf, JOBS, type JobName, SCHEDULES } from '../db/queue/jobs.ts'
import { migrationFiles } from '../db/schema.sql.ts'
import { HANDLERS, SCHEDULED } from '../workers/registry.ts'
import { testDatabase } from './support/database.ts'
import { SLOWEST, testFiles } from './support/order.ts'
import { tapReport } from './support/tap-report.ts'

const ROOT = join(import.meta.dirname, '..')

/** `values` are the imports that are not of types alone; `loaded` those of them that come with the file itself. */
type Source = { file: string; text: string; imports: string[]; values: string[]; loaded: string[] }

/** Every source file with what it imports: our own files by path from the root, packages by name. */
async function sources(...folders: string[]): Promise<Source[]> {
  const lists = await Promise.all(
    folders.map(async (folder) => {
      const files = await readdir(join(ROOT, folder), { recursive: true })
      return files.filter((file) => file.endsWith('.ts')).map((file) => join(folder, file))
    }),
  )
  return Promise.all(
    lists.flat().map(async (file) => {
      const text = await readFile(join(ROOT, file), 'utf8')
      const namesIn = (code: string): string[] =>
        [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)]
          .map(([, name]) => name ?? '')
          .map((name) => (name.startsWith('.') ? relative(ROOT, join(ROOT, dirname(file), name)) : name))
      const code = text.replace(/^import type [^']*'[^']+'/gm, '')
      const loaded = namesIn(code.replace(/\bimport\s*\(/g, ''))
      return { file, text, imports: namesIn(text), values: namesIn(code), loaded }
    }),
  )
}

const all = await sources('api', 'workers', 'db')
const breaking = (holds: (source: Source) => boolean): string[] =>
  all.filter((source) => !holds(source)).map((source) => source.file)
const within = (folders: string[]) => (name: string) =>
  !/^(api|workers|db|test)\//.test(name) || folders.some((folder) => name.startsWith(`${folder}/`))

t.test('api and workers import db and never each other; db imports neither', async (t) => {
  const allowed: Record<string, string[]> = { api: ['api', 'db'], workers: ['workers', 'db'], db: ['db'] }
  t.strictSame(
    breaking(({ file, imports }) => imports.every(within(allowed[file.split('/')[0] ?? ''] ?? []))),
    [],
  )
})

t.test('a process loads nothing at its start that many never use', async (t) => {
  const byFile = new Map(all.map((source) => [source.file, source]))
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    for (const next of byFile.get(from)?.loaded ?? []) {
      if (seen.has(next)) continue
      seen.add(next)
      reach(next, seen)
    }
    return seen
  }
  const web = reach('api/main.ts')
  t.ok(web.has('koa') && web.has('slonik'))
  const late = [
    'api/dashboard/served/dispatch.ts',
    'api/dashboard/routes.ts',
    'openid-client',
    'piscina',
    'nodemailer',
  ]
  t.strictSame(
    late.filter((name) => web.has(name)),
    [],
  )
  const worker = reach('workers/main.ts')
  t.ok(worker.has('pg-boss'))
  const providers = ['@aws-sdk/client-sesv2', 'nodemailer', 'koa']
  t.strictSame(
    providers.filter((name) => worker.has(name)),
    [],
  )
})

/** The rooms of a place, which are its folders and the files at its top, with the rooms that each imports. */
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

/** The rooms that reach themselves. */
function circling(rooms: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    for (const next of rooms.get(from) ?? []) {
      if (seen.has(next)) continue
      seen.add(next)
      reach(next, seen)
    }
    return seen
  }
  return [...rooms.keys()].filter((room) => reach(room).has(room))
}

const PLACES = [
  'api',
  'api/http',
  'api/dashboard',
  'workers',
  'workers/providers',
  'db',
  'db/accounts',
  'db/audience',
  'db/channels',
  'db/content',
  'db/delivery',
  'db/figures',
  'db/messages',
  'db/upkeep',
]

for (const place of PLACES) {
  t.test(`the rooms of ${place} form no circle, types included`, async (t) => {
    const rooms = roomsOf(place)
    t.ok(rooms.size > 1)
    t.strictSame(circling(rooms), [])
  })
}

t.test('nothing outside of db/admin imports it; db/dev is imported by the CLI’s context alone', async (t) => {
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

t.test('what a module exports, another one uses', async (t) => {
  const files = await sources('api', 'workers', 'db', 'test')
  const unused = all.flatMap(({ file, text }) =>
    [...text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)]
      .map(([, name]) => name ?? '')
      .filter(
        (name) => !files.some((other) => other.file !== file && new RegExp(`\\b${name}\\b`).test(other.text)),
      )
      .map((name) => `${file}: ${name}`),
  )
  t.strictSame(unused, [])
})

t.test('pure modules import nothing that reads, writes or tells the time', async (t) => {
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

t.test(
  'only pool, queue, migrate and *.sql.ts modules speak SQL; only the queue imports pg-boss',
  async (t) => {
    const speaks = /\.sql\.ts$|^db\/(migrate|postgres\/\w+|queue\/boss|dev\/\w+)\.ts$/
    t.strictSame(
      breaking(
        ({ file, imports }) => speaks.test(file) || !imports.some((name) => /^(slonik|pg)$/.test(name)),
      ),
      [],
    )
    t.strictSame(
      breaking(({ file, imports }) => file === 'db/queue/boss.ts' || !imports.includes('pg-boss')),
      [],
    )
  },
)

t.test('providers are named in their adapters, their hooks and the settings only', async (t) => {
  // The entry points that mount hooks, the guide to them, the list of who reports, and the contract's reserved header.
  const naming = [
    'api/app.ts',
    'api/main.ts',
    'api/docs/guides.ts',
    'db/channels/email.ts',
    'db/text/headers.ts',
  ]
  const theirs = /^(workers\/providers|api\/hooks)\/|\/config\.ts$/
  const code = (text: string): string => text.replace(/\/\*.*?\*\/|^\s*\/\/.*$/gms, '')
  t.strictSame(
    breaking(
      ({ file, text }) =>
        theirs.test(file) ||
        naming.includes(file) ||
        !/\b([Ss]mtp|SMTP_|ses\b|Ses[A-Z]|SES_|[Ss]ns\b|SNS_|[Aa]mazon|AWS_)/.test(code(text)),
    ),
    [],
  )
})

t.test(
  'a channel is named in its own rooms, and in few files beside them: the others walk over the lists',
  async (t) => {
    const own = /whatsapp/i
    const apart = /^api\/docs\/|\/config\.ts$/
    const naming = all.filter(({ file, text }) => own.test(text) && !own.test(file) && !apart.test(file))
    t.ok(naming.length > 0)
    t.ok(naming.length <= 20, naming.map(({ file }) => file).join(', '))
  },
)

t.test(
  'figures move with their rows: who stores, deletes or raises messages appends what moved',
  async (t) => {
    const statement = String.raw`(email_states|whatsapp_messages|\$\{([\w]+\.)?rows\})`
    const moves = new RegExp(
      `(insert into|delete from) ${statement}|update ${statement}[^\`]*?set[^\`]*?[\\s,]status = `,
    )
    const moving = all.filter(({ file, text }) => file.startsWith('db/') && moves.test(text))
    t.ok(moving.length >= 8)
    for (const { file, text } of moving) t.match(text, /appendMoves\(/, file)
  },
)

t.test('what happened passes through one seam: nobody else stores events or turns contacts', async (t) => {
  const stores = /insert into (email_events|whatsapp_events|\$\{[\w.]*(events|table)\})/
  const turns = /update contacts\b[^`]*?set[^`]*?\b(status|suppression) = /
  t.strictSame(
    all.filter(({ text }) => stores.test(text)).map(({ file }) => file),
    ['db/channels/happenings/events.sql.ts'],
  )
  t.strictSame(
    all
      .filter(({ text }) => turns.test(text))
      .map(({ file }) => file)
      .sort(),
    ['db/audience/contacts/contacts.sql.ts', 'db/audience/suppressions/suppressions.sql.ts'],
  )
  const writers = /\b(updateContactStatus|bounceContacts|complainContacts|settleSoftBounces|liftContact)\b/
  const calling = all.filter(({ file, text }) => !file.endsWith('.sql.ts') && writers.test(text))
  t.ok(calling.length >= 3)
  for (const { file, text } of calling) t.match(text, /publishContacts\(/, file)
  const publishing = all.filter(({ imports }) => imports.includes('db/channels/happenings/publish.ts'))
  t.strictSame(publishing.map(({ file }) => file).sort(), [
    'db/audience/contacts/changes.ts',
    'db/channels/happenings/store-events.ts',
    'db/messages/broadcasts/change-state.ts',
  ])
})

t.test('prepared statements have names of their own', async (t) => {
  const names = all.flatMap(({ text }) =>
    [...text.matchAll(/sql\.prepared\('([^']+)'/g)].map(([, name]) => name),
  )
  t.ok(names.length > 20)
  t.strictSame(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})

/** Programs for clients, as text: what they do is not ours. */
const SAMPLES = 'api/docs/samples.ts'

t.test('process.env is read in the three config modules only', async (t) => {
  t.strictSame(
    breaking(
      ({ file, text }) =>
        file === SAMPLES ||
        /^(api|workers|db\/process)\/config\.ts$/.test(file) ||
        !text.includes('process.env'),
    ),
    [],
  )
})

t.test('a comment cites headings of api/DECISIONS.md alone, and no document from elsewhere', async (t) => {
  const page = await readFile(join(ROOT, 'api/DECISIONS.md'), 'utf8')
  const headings = new Set([...page.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading))
  const cited = all.flatMap(({ file, text }) =>
    [...text.replace(/\n *(?:\*|\/\/) ?/g, ' ').matchAll(/DECISIONS: ([^.;)*]+)/g)].flatMap(([, list = '']) =>
      list.split(',').map((heading) => ({ file, heading: heading.trim() })),
    ),
  )
  t.ok(cited.length > 50)
  t.strictSame(
    cited.filter(({ heading }) => !headings.has(heading)),
    [],
  )
  // A section sign is of an RFC, which it follows on its line.
  const foreign = /^(?!.*RFC).*§|\b[Dd]ecisions: |decisions\.md|\b[Dd]esign §|providers\.md|reliability §/m
  t.strictSame(
    breaking(({ text }) => !foreign.test(text)),
    [],
  )
})

t.test('no function of ours is longer than 60 lines, blank ones and comments among them', async (t) => {
  const opens = /^(?:export )?(?:default )?(?:async )?(?:function\b|const \w+.*(?:=> \(?\{|= (?:async )?\()$)/
  const long = all.flatMap(({ file, text }) => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const length = opens.test(line)
        ? lines.slice(at).findIndex((each) => /^\}?\)?$/.test(each) && each) + 1
        : 0
      return length > 60 ? [`${file}: ${line.slice(0, 60)}: ${length}`] : []
    })
  })
  t.strictSame(long, [])
  // The linter sees those inside of others, too.
  const { overrides } = JSON.parse(await readFile(join(ROOT, 'biome.json'), 'utf8'))
  t.match(overrides[0], {
    includes: ['api/**/*.ts', 'workers/**/*.ts', 'db/**/*.ts'],
    linter: {
      rules: {
        complexity: { noExcessiveLinesPerFunction: { level: 'error', options: { maxLines: 60 } } },
      },
    },
  })
  const spared = all.filter(({ text }) => text.includes('noExcessiveLinesPerFunction'))
  t.strictSame(spared, [])
})

t.test('no comment is wider than 120 columns', async (t) => {
  const wide = all.flatMap(({ file, text }) =>
    text
      .split('\n')
      .filter((line) => line.length > 120 && /^\s*(\*|\/\/|\/\*)/.test(line))
      .map((line) => `${file}: ${line.trim().slice(0, 60)}`),
  )
  t.strictSame(wide, [])
})

t.test('answers of counterparts over HTTP are read within the bounds of bounded-answer.ts', async (t) => {
  const bounded = 'db/process/bounded-answer.ts'
  // A form of our own, bounded as it came in; code that a page shows; what an operator pipes in.
  const others = ['api/dashboard/served/dispatch.ts', SAMPLES, 'db/admin/input.ts']
  const unbounded =
    /(?:await|return|=>|[=(,]) *fetch\(|\.(json|text|arrayBuffer|blob|bytes|formData)\(\)|stream\/consumers|\.getReader\(|[gG]unzip/
  const code = (text: string): string => text.replace(/\/\*.*?\*\/|^\s*\/\/.*$/gms, '')
  t.strictSame(
    breaking(({ file, text }) => file === bounded || others.includes(file) || !unbounded.test(code(text))),
    [],
  )
  // Whatever asks by another client hands its answers over.
  const asks = /import \{[^}]*\b(get|request)\b[^}]*\} from 'node:https?'|\bnew SESv2Client\(|\bdiscovery\(/
  const asking = all.filter(({ text }) => asks.test(text))
  t.strictSame(asking.map(({ file }) => file).sort(), [
    'api/dashboard/served/openid.ts',
    'api/hooks/sns.ts',
    'workers/providers/ses/adapter.ts',
    'workers/providers/webhook/post.ts',
  ])
  for (const { file, imports } of asking) t.ok(imports.includes(bounded), file)
})

t.test('every module opens by saying what it is', async (t) => {
  t.strictSame(
    breaking(({ text }) => /^(\/\*\*|\/\/ )/.test(text)),
    [],
  )
})

t.test('every job has a handler and a dead letter queue, every schedule a runner', async (t) => {
  t.strictSame(Object.keys(HANDLERS).sort(), Object.keys(JOBS).sort())
  t.strictSame(Object.keys(SCHEDULED).sort(), Object.keys(SCHEDULES).sort())
  for (const job of Object.keys(JOBS)) t.equal(deadLetterOf(job as JobName), `${job}-dead`)
  const lists = ['workers/jobs', 'workers/channels'].map((folder) => readdir(join(ROOT, folder)))
  const files = (await Promise.all(lists)).flat().map((file) => file.replace('.ts', ''))
  const named = [...Object.keys(JOBS), ...Object.keys(SCHEDULES)]
  t.strictSame(
    named.filter((name) => !files.includes(name)),
    [],
    'a job’s file is its name',
  )
  const jobs = await readdir(join(ROOT, 'workers/jobs'))
  t.strictSame(
    jobs.filter((file) => !named.includes(file.replace('.ts', ''))),
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
        !/^(GET|POST) \/($|health|ready|docs$|openapi\.json$|metrics$|scale$|hirefire\/|hooks\/|u\/|v1\/plans)/.test(
          route,
        ),
    ),
    [],
  )
  for (const { method, path, access } of ROUTES) {
    if (access !== 'public') t.ok(access.kinds.includes('key'), `${method} ${path}`)
  }
})

t.test('a run names the tests at its end that it left out, and why', async (t) => {
  const said: string[] = []
  const report = tapReport((line) => said.push(line))
  const lines = [
    '# Subtest: test/a.test.ts',
    '    ok 1 - through a pooler # SKIP pgbouncer is not installed',
    '    # Subtest: with promtool',
    '        1..0 # SKIP promtool is not installed',
    '    ok 2 - with promtool # SKIP promtool is not installed',
    '    1..2',
    'ok 1 - test/a.test.ts # time=1ms',
    '# Subtest: test/b.test.ts',
    '    1..0 # SKIP chromium is not installed',
    'ok 2 - test/b.test.ts # SKIP chromium is not installed',
    '# { total: 3, skip: 3 }',
  ]
  for (const line of lines) report.line(line)
  t.strictSame(report.finish(), { passed: 0, failed: 0 })
  t.strictSame(said.at(-1)?.split('\n'), [
    'left out:',
    '  test/a.test.ts: through a pooler: pgbouncer is not installed',
    '  test/a.test.ts: with promtool: promtool is not installed',
    '  test/b.test.ts: chromium is not installed',
  ])
})

t.test('a run begins with the slowest test files, and every one of them is there', async (t) => {
  const files = await testFiles(ROOT)
  t.strictSame(files.slice(0, SLOWEST.length), SLOWEST)
  t.equal(new Set(files).size, files.length)
  await Promise.all(files.map((file) => access(join(ROOT, file))))
})

t.test('every route under /v1 describes itself', async (t) => {
  t.strictSame(
    V1_ROUTES.filter(({ about }) => about === undefined).map(({ method, path }) => `${method} ${path}`),
    [],
  )
})

t.test(
  'the dashboard’s views escape whatever they show, and bring no script or style of their own',
  async (t) => {
    const folder = join(ROOT, 'api/dashboard/drawn/views')
    const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.hbs'))
    t.ok(files.length > 10)
    for (const file of files) {
      const text = await readFile(join(folder, file), 'utf8')
      t.notMatch(text, /\{\{\{|\{\{~?\s*&|<style|\sstyle=|\son\w+=|<script(?! src=)|=\{\{/, file)
    }
    const made = all.filter(
      ({ file, text }) => file.startsWith('api/dashboard/') && /SafeString|triple/.test(text),
    )
    t.strictSame(
      made.map(({ file }) => file),
      [],
    )
    const sizes = { 'dashboard.css': 16 * 1024, 'dashboard.js': 250 * 90 }
    for (const [name, most] of Object.entries(sizes)) {
      const text = await readFile(join(ROOT, 'api/dashboard/drawn/assets', name), 'utf8')
      t.ok(Buffer.byteLength(text) <= most, name)
      t.ok(text.split('\n').length <= 251 || name.endsWith('.css'), name)
    }
  },
)

t.test('every code has a status', async (t) => {
  t.strictSame(Object.keys(STATUS).sort(), [...CODES].sort())
})

t.test('migrations are numbered without gaps, and line one says why', async (t) => {
  for (const { file } of await migrationFiles()) {
    t.match(await readFile(join(ROOT, 'db/migrations', file), 'utf8'), /^-- \w/, file)
  }
})

t.test('a migration that has landed is frozen: its digest stands in SHA256SUMS', async (t) => {
  const sums = await readFile(join(ROOT, 'db/migrations/SHA256SUMS'), 'utf8')
  const files = await migrationFiles()
  // To add a migration: `cd db/migrations && sha256sum NEW.sql >> SHA256SUMS`. Lines that stand there never change.
  t.strictSame(
    sums.trim().split('\n'),
    files.map(({ digest, file }) => `${digest}  ${file}`),
  )
})

// Read before the team is known, or belonging to none (design §6).
const DIRECTORIES = [
  'plans',
  'users',
  'api_keys',
  'sessions',
  'schema_migrations',
  'secret_canary',
  'senders',
  'recipient_pauses',
  'standstills',
  'sender_events',
  'paused_queues',
  'reports',
  'login_links',
  'login_requests',
  'openid_identities',
  'dashboard_sessions',
  'dashboard_seats',
  'audit_entries',
  'processes',
  'counters',
  'upkeep',
  'works',
]

const keyRow = object({
  table: string().defined(),
  name: string().defined(),
  columns: array(string().defined()).defined(),
})

t.test('team_id comes first in every key of every table that a team owns', async (t) => {
  const database = await openDatabase((await testDatabase(t)).url, { size: 1 })
  t.teardown(() => database.end())
  const keys = await database.any(sql.type(keyRow)`
    select c.conrelid::regclass::text as table, c.conname as name,
      array(select attname::text from unnest(c.conkey) with ordinality k (attnum, position)
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum order by position) as columns
    from pg_constraint c join pg_namespace n on n.oid = c.connamespace
    where n.nspname = 'public' and c.contype in ('p', 'u', 'f')
    union all
    select i.indrelid::regclass::text, i.indexrelid::regclass::text,
      array(select attname::text from unnest(i.indkey::int2[]) with ordinality k (attnum, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum order by position)
    from pg_index i join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = t.relnamespace
    where n.nspname = 'public' and i.indisunique`)
  const owned = keys.filter(({ table }) => !DIRECTORIES.includes(table))
  t.ok(owned.length > 10)
  // teams is the team: its id is the team_id. A subscription's plan is in a directory.
  const fits = ({ table, columns }: { table: string; columns: string[] }) =>
    columns[0] === (table === 'teams' ? 'id' : 'team_id')
  const exempt = ['subscriptions_plan_key_fkey', 'memberships_user_id_fkey']
  t.strictSame(
    owned.filter((key) => !fits(key) && !exempt.includes(key.name)),
    [],
  )
})
