/** The architecture rules: allowed imports, the modules with settings and SQL, and restricted names. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, type Source, sources } from './support/sources.ts'
import t from './support/tap.ts'

const all = await sources('api', 'workers', 'db')
const breaking = (holds: (source: Source) => boolean): string[] =>
  all.filter((source) => !holds(source)).map((source) => source.file)
const within = (folders: string[]) => (name: string) =>
  !/^(api|workers|db|test)\//.test(name) || folders.some((folder) => name.startsWith(`${folder}/`))

/** A source without its comments. */
const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|^[ \t]*\/\/.*$/gm, '')

/** Returns everything reachable from a name. It includes the name itself if it is in a cycle. */
function reachedFrom(
  from: string,
  leadsTo: ReadonlyMap<string, Iterable<string>>,
  seen = new Set<string>(),
): Set<string> {
  for (const next of leadsTo.get(from) ?? []) {
    if (seen.has(next)) continue
    seen.add(next)
    reachedFrom(next, leadsTo, seen)
  }
  return seen
}

t.test('api and workers import db, never each other', async (t) => {
  const allowed: Record<string, string[]> = { api: ['api', 'db'], workers: ['workers', 'db'], db: ['db'] }
  t.strictSame(
    breaking(({ file, imports }) => imports.every(within(allowed[file.split('/')[0] ?? ''] ?? []))),
    [],
  )
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
  t.equal(['slonik', 'pg', 'pg-boss', 'koa'].filter((name) => thread.has(name)).join(), '')
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
    some.flatMap(({ imports, text }) => imports.map((from) => ({ from, text: code(text) }))),
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

t.test('SQL is only in *.sql.ts, pool, queue and migrate', async (t) => {
  const speaks = /\.sql\.ts$|^db\/(migrate|postgres\/\w+|queue\/boss|dev\/\w+)\.ts$/
  t.strictSame(
    breaking(({ file, imports }) => speaks.test(file) || !imports.some((name) => /^(slonik|pg)$/.test(name))),
    [],
  )
  t.strictSame(
    breaking(({ file, imports }) => file === 'db/queue/boss.ts' || !imports.includes('pg-boss')),
    [],
  )
})

t.test('only db/queue names pg-boss’s tables, however a statement is assembled', async (t) => {
  const naming = all.filter(({ text }) => /pgboss/i.test(code(text)))
  t.ok(naming.length > 3)
  t.strictSame(
    naming.map(({ file }) => file).filter((file) => !file.startsWith('db/queue/')),
    [],
  )
})

t.test("jsonb columns are searched by statements, json ones aren't", async (t) => {
  const folder = join(ROOT, 'db/migrations')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  const schema = (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
  const statements = all.filter(({ file }) => file.endsWith('.sql.ts')).map(({ text }) => code(text))
  const looksInside = (column: string): boolean => {
    const inside = new RegExp(`\\b${column}(::jsonb)? (->|@>|\\? )|\\bjsonb_(exists|each)\\w*\\(${column}\\b`)
    return statements.some((text) => inside.test(text))
  }
  const columns = [...schema.matchAll(/^ {2}(\w+) (jsonb?)\b/gm)].map(([, name = '', type]) => ({
    name,
    type,
  }))
  t.ok(columns.length > 15)
  const written = ['tags', 'tiers', 'contacts_tiers']
  const odd = columns.filter(
    ({ name, type }) => !written.includes(name) && (type === 'jsonb') !== looksInside(name),
  )
  t.strictSame(odd, [], '(DECISIONS: JSON columns)')
})

t.test('only db/process/ids.ts makes ids', async (t) => {
  // The second one creates bounds to compare IDs with.
  const files = ['db/process/ids.ts', 'db/validation/ids.ts']
  t.strictSame(
    breaking(({ file, text }) => files.includes(file) || !/\bv[1-7] as |\buuidv?\d\(/.test(text)),
    [],
  )
})

t.test('only adapters, hooks and settings name providers', async (t) => {
  // The phrases of servers, the entry points that mount hooks, the guides, the channel's list of providers, and
  // the reserved header.
  const naming = [
    'api/app.ts api/main.ts api/docs/guides.ts db/channels/email.ts db/validation/headers.ts',
    'db/validation/failure-table.ts',
  ].flatMap((names) => names.split(' '))
  const theirs = /^(workers\/providers|api\/hooks)\/|\/config\.ts$/
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

/** Registries of channels, hooks, jobs, pages and metrics, and rows that name each channel. */
const NAMING_WHATSAPP = [
  'api/dashboard/components/action-labels.ts',
  ...['api/dashboard/pages/integration.ts', 'api/dashboard/pages/operator/health.ts'],
  'api/dashboard/pages/operator/queue-names.ts',
  'api/dashboard/pages/operator/teams.ts',
  ...['api/dashboard/routes.ts', 'api/dashboard/server/nav.ts'],
  ...['api/hooks/list.ts', 'api/sends/accepts.ts', 'api/v1/bodies.ts', 'api/v1/routes.ts'],
  ...['db/accounts/teams/limits.ts', 'db/accounts/teams/teams.sql.ts', 'db/admin/contact.ts'],
  ...['db/admin/main.ts', 'db/admin/number.ts', 'db/admin/team.ts', 'db/channels/channels.sql.ts'],
  ...['db/channels/events/webhooks.ts', 'db/channels/list.ts', 'db/channels/queues.ts'],
  'db/delivery/senders/senders.sql.ts',
  ...['db/maintenance/background-jobs/kinds.ts', 'db/maintenance/reseal.ts'],
  ...['db/messages/apply-reports.ts', 'db/messages/notice.ts', 'db/messages/scheduled.ts'],
  ...['db/process/metrics.ts', 'db/process/secrets.ts', 'db/queue/jobs.ts'],
  ...['db/stats/fleet/exposition.ts', 'db/stats/fleet/fleet.sql.ts'],
  ...['workers/monitoring/stats.ts', 'workers/providers/list.ts', 'workers/providers/test/reports.ts'],
  'workers/registry.ts',
]

t.test('only a few files outside a channel’s modules name it', async (t) => {
  const own = /whatsapp/i
  const apart = /^api\/docs\/|\/config\.ts$/
  const naming = all.filter(({ file, text }) => own.test(text) && !own.test(file) && !apart.test(file))
  t.strictSame(naming.map(({ file }) => file).sort(), NAMING_WHATSAPP)
})

t.test('only one module stores events or changes contacts', async (t) => {
  const stores = /insert into (email_events|whatsapp_events|\$\{[\w.]*(events|table)\})/
  const turns = /update contacts\b[^`]*?set[^`]*?\b(status|suppression) = /
  t.strictSame(
    all.filter(({ text }) => stores.test(text)).map(({ file }) => file),
    ['db/channels/events/events.sql.ts'],
  )
  t.strictSame(
    all
      .filter(({ text }) => turns.test(text))
      .map(({ file }) => file)
      .sort(),
    ['db/audience/contacts/contacts.sql.ts', 'db/audience/suppressions/suppressions.sql.ts'],
  )
  const writers = /\b(updateContactStatus|markSuppressed|releaseContacts)\(/
  const calling = all.filter(({ file, text }) => !file.endsWith('.sql.ts') && writers.test(text))
  t.ok(calling.length >= 2)
  for (const { file, text } of calling) t.match(text, /publishContacts\(/, file)
  const publishing = all.filter(({ text }) => /^import \{.*\bpublish\b.*\/webhooks\.ts'/m.test(text))
  t.strictSame(publishing.map(({ file }) => file).sort(), [
    'db/accounts/domains/recheck.ts',
    'db/audience/contacts/changes.ts',
    'db/channels/events/store-events.ts',
    'db/messages/broadcasts/change-state.ts',
    'db/messages/bulk-pause.ts',
    'db/messages/whatsapp/apply-template-events.ts',
    'db/messages/whatsapp/opt-outs.ts',
  ])
})

t.test('only use cases write audit entries', async (t) => {
  const trail = 'db/accounts/audit/'
  t.strictSame(
    all.filter(({ text }) => text.includes('into audit_entries')).map(({ file }) => file),
    [`${trail}audit.sql.ts`],
  )
  t.strictSame(
    all.filter(({ text }) => /\binsertAuditEntry\b/.test(text)).map(({ file }) => file),
    [`${trail}audit.sql.ts`, `${trail}record.ts`],
  )
  const writing = all.filter(({ values }) => values.includes(`${trail}record.ts`)).map(({ file }) => file)
  t.ok(writing.length > 20)
  t.strictSame(
    writing.filter((file) => !file.startsWith('db/') || /^db\/admin\/|\.sql\.ts$/.test(file)),
    [],
  )
})

t.test('pages use builders.ts, list.ts, filter.ts and csv.ts', async (t) => {
  const OTHER_WAYS: Readonly<Record<string, RegExp>> = {
    'a page as a literal: get, post, action': /: (?:Team|Person|Own|Open)Page = \{|\bmethod: '(?:GET|POST)'/,
    'a form as a literal: button, buildForm': /\bmethod: 'post'/,
    'columns apart from their cells: buildTable': /\bcolumns: |\bcells: \[/,
    'an empty list in place of nothing: compact': /\.\.\.\([^()]*\? \[\] : \[|\.\.\.\([^?]*\?[^:]*: \[\]\)/,
    'batches read by hand, or a file of a list: defineCsv':
      /for \(let \w+: string \| undefined; ; \)|\bcsvFile\('(?!refused')/,
    'a page of a list by hand: pageById':
      /\bPAGE_SIZE\b|(?:idParam|query\.(?:get|has))\([^)]*'(?:before|after|newer)'/,
    'a filter by hand: defineFilter':
      /kind: 'filter'|\b(?:filled|optionsWithAny|refuseUnknownParams|wordChips|setChips|statusChips)\(/,
    'a hidden field as a literal: hidden': /type: 'hidden', value/,
    'a transaction as the person by hand: action': /\.transaction\([^)]*\) =>[^;]{0,400}actor: person/,
    'a word that builders.ts needs no help with: as const':
      /'(?:form|table|alerts|actions|post|warn|bad|danger)' as const/,
  }
  /**
   * The columns of an imported file are arbitrary, and a preview's parameters don't belong to a list's
   * filter.
   */
  const isApart = ({ file }: Source, way: string): boolean =>
    (file.endsWith('/import-columns.ts') && way.startsWith('columns')) ||
    (file.endsWith('-preview.ts') && way.startsWith('a filter'))
  const found = all
    .filter(({ file }) => file.startsWith('api/dashboard/pages/'))
    .flatMap((source) =>
      Object.entries(OTHER_WAYS)
        .filter(([name, way]) => way.test(code(source.text)) && !isApart(source, name))
        .map(([name]) => `${source.file}: ${name}`),
    )
  t.strictSame(found, [])
})

t.test('a button names its object, never only a verb', async (t) => {
  const bare =
    /'(?:Create|Delete|Disable|Discard|Drop|Duplicate|Enable|Move|New secret|Pause|Publish|Remove|Rename|Restore|Resume|Revoke|Save)'/
  const pages = all.filter(({ file }) => file.startsWith('api/dashboard/pages/'))
  t.strictSame(
    pages.filter(({ text }) => bare.test(code(text))).map(({ file }) => file),
    [],
  )
})

/** They read messages of Node, PostgreSQL, libraries and providers, which have nothing better. */
const READERS_OF_FOREIGN_MESSAGES = [
  ...['api/http/input.ts', 'db/process/thread.ts', 'db/admin/fault.ts'],
  ...['db/postgres/driver.ts', 'db/postgres/pool.ts'],
]

t.test('no code parses our own error messages', async (t) => {
  const methods =
    'at|charAt|endsWith|includes|indexOf|match|replace|replaceAll|search|slice|split|startsWith|substring'
  const name = String.raw`(?:\w+\??\.)*(?:message|problem)`
  const reading = new RegExp(String.raw`\b${name}\??\.(?:${methods})\(|\.(?:exec|test)\(${name}\b`)
  t.strictSame(
    breaking(
      ({ file, text }) =>
        file.startsWith('workers/providers/') ||
        READERS_OF_FOREIGN_MESSAGES.includes(file) ||
        !reading.test(code(text)),
    ),
    [],
  )
})

t.test('nearly all error messages are in tables', async (t) => {
  const inPlace = /new (?:RequestError|Unavailable)\(\s*['\w]+,\s*['"`]/
  const files = breaking(({ text }) => !inPlace.test(code(text)))
  t.ok(files.length <= 15, files.join())
})

t.test('each prepared statement has its own name', async (t) => {
  const names = all.flatMap(({ text }) =>
    [...text.matchAll(/sql\.prepared\('([^']+)'/g)].map(([, name]) => name),
  )
  t.ok(names.length > 20)
  t.equal(names.filter((name, index) => names.indexOf(name) !== index).join(), '')
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

t.test('a test file imports t from support/tap.ts', async (t) => {
  const files = (await sources('test')).filter(({ file }) => file.endsWith('.test.ts'))
  const others = files.filter(({ values }) => !values.includes('test/support/tap.ts'))
  t.equal(others.map(({ file }) => file).join(), '')
})

/** Programs for clients, as text. The rules don't apply to them. */
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

t.test('no function is longer than 60 lines', async (t) => {
  const opens = /^(?:export )?(?:default )?(?:async )?(?:function\b|const \w+.*(?:=> \(?\{|= (?:async )?\()$)/
  // One that is a single expression ends where a blank line follows.
  const isShort = (own: readonly string[], end: number) =>
    own.slice(0, end).some((line) => /^\).* =>$/.test(line))
  const long = all.flatMap(({ file, text }) => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const length = opens.test(line)
        ? lines
            .slice(at)
            .findIndex((each, index, own) => /^\}?\)?$/.test(each) && (each || isShort(own, index))) + 1
        : 0
      return length > 60 ? [`${file}: ${line.slice(0, 60)}: ${length}`] : []
    })
  })
  t.strictSame(long, [])
  // The linter also sees nested ones.
  const { overrides } = JSON.parse(await readFile(join(ROOT, 'biome.json'), 'utf8'))
  t.match(overrides[0], {
    includes: ['api/**/*.ts', 'workers/**/*.ts', 'db/**/*.ts'],
    linter: {
      rules: { complexity: { noExcessiveLinesPerFunction: { level: 'error', options: { maxLines: 60 } } } },
    },
  })
  const spared = all.filter(({ text }) => text.includes('noExcessiveLinesPerFunction'))
  t.strictSame(spared, [])
})

/** Words for what reads outside bytes without a bound of ours, and the modules that put one before it. */
const BOUNDED: readonly { reads: RegExp; what: string; owners: readonly string[] }[] = [
  {
    what: 'fields out of a text',
    // Any module may build a query from an object or from pairs.
    reads: /new URLSearchParams\((?!\)|\{|\[|$)|\.searchParams\b|querystring'|ctx\.(request\.)?query\b/m,
    // The others read an operator's settings, and the requests of SES's SDK.
    owners: [
      'api/http/forms.ts',
      'db/postgres/address.ts',
      'workers/providers/ses/handler.ts',
      'workers/providers/smtp/url.ts',
    ],
  },
  { what: 'the parts of a form', reads: /\bformData\(|\bmultipart\.parse/, owners: ['api/http/forms.ts'] },
]

for (const { what, reads, owners } of BOUNDED) {
  t.test(`only who bounds it beforehand reads ${what}`, async (t) => {
    const reading = all.filter(({ file, text }) => file !== SAMPLES && reads.test(code(text)))
    t.strictSame(reading.map(({ file }) => file).sort(), [...owners])
  })
}

t.test('HTTP responses are read within the limits of limited-response.ts', async (t) => {
  const bounded = 'db/process/limited-response.ts'
  // A form that is already bounded, code shown on a page, and an operator's piped input.
  const others = ['api/http/forms.ts', SAMPLES, 'db/admin/input.ts']
  const unbounded =
    /(?:await|return|=>|[=(,]) *fetch\(|\.(json|text|arrayBuffer|blob|bytes|formData)\(\)|stream\/consumers|\.getReader\(|[gG]unzip/
  t.strictSame(
    breaking(({ file, text }) => file === bounded || others.includes(file) || !unbounded.test(code(text))),
    [],
  )
  // Anything that requests through another client passes on its responses.
  const asks = /\bnew SESv2Client\(|\bdiscovery\(/
  const asking = all.filter(({ text }) => asks.test(text)).map(({ file }) => file)
  t.strictSame(asking, ['api/dashboard/server/openid.ts', 'workers/providers/ses/adapter.ts'])
  const handed = ['api/dashboard/server/openid.ts', 'workers/providers/ses/handler.ts']
  for (const each of handed) t.ok(all.find(({ file }) => file === each)?.imports.includes(bounded), each)
})

t.test('views escape everything, and have no inline scripts or styles', async (t) => {
  const under = async (folder: string) =>
    (await readdir(join(ROOT, folder), { recursive: true })).map((file) => `${folder}/${file}`)
  const files = [...(await under('api')), ...(await under('test/sandbox'))].filter((file) =>
    file.endsWith('.hbs'),
  )
  const folders = ['api/dashboard/', 'api/docs/', 'api/public/', 'test/sandbox/']
  t.ok(folders.every((folder) => files.some((file) => file.startsWith(folder))))
  for (const file of files) {
    const text = await readFile(join(ROOT, file), 'utf8')
    t.notMatch(text, /\{\{\{|\{\{~?\s*&|\sstyle=|\son\w+=|=\{\{/, file)
    // A style or script in these pages contains either no value, or only a value.
    const own = /^api\/(docs|public)\//.test(file)
      ? /<(style|script)>(?!\{\{\w+\}\}<|(?:(?!\{\{)[^<])*<\/\1>)/
      : /<style|<script(?! src=)/
    t.notMatch(text, own, file)
  }
  // The style, the script and the guides of the documentation page: none has data of a team.
  const made = all.filter(({ file, text }) => file.startsWith('api/') && /SafeString|triple/.test(text))
  t.equal(made.map(({ file }) => file).join(), 'api/docs/page.ts')
  const sizes = { 'dashboard.css': 24 * 1024, 'dashboard.js': 300 * 90 }
  for (const [name, most] of Object.entries(sizes)) {
    const text = await readFile(join(ROOT, 'api/dashboard/components/assets', name), 'utf8')
    t.ok(Buffer.byteLength(text) <= most, name)
    t.ok(text.split('\n').length <= 301 || name.endsWith('.css'), name)
  }
})

t.test('no module puts values into HTML: views and templates do', async (t) => {
  // They add to a team's own HTML, or to the output of the Markdown library. The last one writes programs.
  const others = [
    ...['api/dashboard/pages/template-preview.ts', 'api/dashboard/server/guard.ts', 'api/docs/guides.ts'],
    SAMPLES,
  ]
  const tag =
    /<(?:a|body|button|code|div|form|h\d|hr|html|img|input|label|li|ol|p|pre|script|span|strong|style|t[drh]|table|ul)\b/
  const isFilled = (literal: string) => literal.includes('${') && tag.test(literal)
  const files = all
    .filter(({ text }) =>
      code(text)
        .match(/`[^`]*`/g)
        ?.some(isFilled),
    )
    .map(({ file }) => file)
  t.strictSame(files.sort(), others)
})

t.test('outgoing HTTP requests and lookups each start in one place', async (t) => {
  const files = (pattern: RegExp) => all.filter(({ text }) => pattern.test(text)).map(({ file }) => file)
  const http =
    /import (?:(?!type\b)\w|\*|\{[^}]*\b(?:get|request)\b)[^;\n}]*\}? from '(?:node:)?https?'|'(?:node:http2|undici)'/
  t.strictSame(files(http), ['db/process/http-client.ts'])
  t.strictSame(files(/'(?:node:)?dns(?:\/promises)?'/), ['db/process/dns.ts'])
})
