/** The only modules with SQL, settings, ids, providers, events, audit entries, forms and requests. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, SAMPLES, type Source, sources, withoutComments } from './support/sources.ts'
import t from './support/tap.ts'

const all = await sources('api', 'workers', 'db')
const breaking = (holds: (source: Source) => boolean): string[] =>
  all.filter((source) => !holds(source)).map((source) => source.file)

t.test('SQL is only in *.sql.ts, pool, queue and migrate', async (t) => {
  const speaks = /\.sql\.ts$|^db\/(migrate|postgres\/\w+|queue\/boss|dev\/\w+)\.ts$/
  t.strictSame(
    breaking(({ file, imports }) => speaks.test(file) || !imports.some((name) => /^(slonik|pg)$/.test(name))),
    [],
  )
  const others = breaking(({ file, imports }) => file === 'db/queue/boss.ts' || !imports.includes('pg-boss'))
  t.strictSame(others, [])
})

t.test('only db/queue names pg-boss’s tables, however a statement is assembled', async (t) => {
  const naming = all.filter(({ text }) => /pgboss/i.test(withoutComments(text)))
  t.ok(naming.length > 3)
  const others = naming.map(({ file }) => file).filter((file) => !file.startsWith('db/queue/'))
  t.strictSame(others, [])
})

t.test("jsonb columns are searched by statements, json ones aren't", async (t) => {
  const folder = join(ROOT, 'db/migrations')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  const schema = (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
  const statements = all
    .filter(({ file }) => file.endsWith('.sql.ts'))
    .map(({ text }) => withoutComments(text))
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
  const others = breaking(({ file, text }) => files.includes(file) || !/\bv[1-7] as |\buuidv?\d\(/.test(text))
  t.strictSame(others, [])
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
        !/\b([Ss]mtp|SMTP_|ses\b|Ses[A-Z]|SES_|[Ss]ns\b|SNS_|[Aa]mazon|AWS_)/.test(withoutComments(text)),
    ),
    [],
  )
})

/** Registries of channels, hooks, jobs, pages and metrics, and rows that name each channel. */
const NAMING_WHATSAPP = [
  'api/dashboard/components/action-labels.ts',
  ...['api/dashboard/pages/integration.ts', 'api/dashboard/pages/operator/health.ts'],
  'api/dashboard/pages/operator/queue-names.ts',
  ...['api/dashboard/pages/operator/team.ts', 'api/dashboard/pages/overview-waits.ts'],
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
  const storing = all.filter(({ text }) => stores.test(text)).map(({ file }) => file)
  t.strictSame(storing, ['db/channels/events/events.sql.ts'])
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
  const inserting = all.filter(({ text }) => text.includes('into audit_entries')).map(({ file }) => file)
  t.strictSame(inserting, [`${trail}audit.sql.ts`])
  const calling = all.filter(({ text }) => /\binsertAuditEntry\b/.test(text)).map(({ file }) => file)
  t.strictSame(calling, [`${trail}audit.sql.ts`, `${trail}record.ts`])
  const writing = all.filter(({ values }) => values.includes(`${trail}record.ts`)).map(({ file }) => file)
  t.ok(writing.length > 20)
  const others = writing.filter((file) => !file.startsWith('db/') || /^db\/admin\/|\.sql\.ts$/.test(file))
  t.strictSame(others, [])
})

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
    const reading = all.filter(({ file, text }) => file !== SAMPLES && reads.test(withoutComments(text)))
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
    breaking(
      ({ file, text }) => file === bounded || others.includes(file) || !unbounded.test(withoutComments(text)),
    ),
    [],
  )
  // Anything that requests through another client passes on its responses.
  const asks = /\bnew SESv2Client\(|\bdiscovery\(/
  const asking = all.filter(({ text }) => asks.test(text)).map(({ file }) => file)
  t.strictSame(asking, ['api/dashboard/server/openid.ts', 'workers/providers/ses/adapter.ts'])
  const handed = ['api/dashboard/server/openid.ts', 'workers/providers/ses/handler.ts']
  for (const each of handed) t.ok(all.find(({ file }) => file === each)?.imports.includes(bounded), each)
})

t.test('outgoing HTTP requests and lookups each start in one place', async (t) => {
  const files = (pattern: RegExp) => all.filter(({ text }) => pattern.test(text)).map(({ file }) => file)
  const http =
    /import (?:(?!type\b)\w|\*|\{[^}]*\b(?:get|request)\b)[^;\n}]*\}? from '(?:node:)?https?'|'(?:node:http2|undici)'/
  t.strictSame(files(http), ['db/process/http-client.ts'])
  t.strictSame(files(/'(?:node:)?dns(?:\/promises)?'/), ['db/process/dns.ts'])
})
