/**
 * Runs every call in /docs as pasted, in curl, Node.js and Python, against a service with the IDs it uses.
 */
import { symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { delimiter, dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { createDocs } from '../../api/docs/routes.ts'
import { BATCH_SAMPLES, LANGUAGES, SIZED_BATCH_SAMPLES } from '../../api/docs/samples.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import { broadcastingOf, PUBLIC_URL } from '../support/broadcasting.ts'
import { bareEnvironment } from '../support/environment.ts'
import { portOf } from '../support/port.ts'
import { MODULES } from '../support/program.ts'
import { programMissing, runProgram } from '../support/programs.ts'
import { usedBy } from '../support/rows.ts'
import { startSamples } from '../support/sample-programs.ts'
import { anEmail, makeTeam, type TestTeam, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, aTemplate, makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const { service } = await world(t, { publicUrl: PUBLIC_URL })
// A worker processes bulk upserts.
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
const { base, call } = service

const missing = new Map<string, string>()
for (const [language, program] of [['curl', 'curl'] as const, ['Python', 'python3'] as const]) {
  const fault = await programMissing(program, program)
  if (fault) missing.set(language, fault)
}
for (const fault of missing.values()) t.comment(fault)
const isInstalled = (language: string): boolean => !missing.has(language)

/**
 * The working directory of samples. They can write files and find packages. curl prints the status after each
 * response.
 */
const directory = t.testdir({ '.curlrc': 'silent\nwrite-out = "\\n%{http_code}\\n"\n' })
await symlink(MODULES, join(directory, 'node_modules'))

const BARE = bareEnvironment()
const shared = { ...BARE, PATH: [dirname(process.execPath), BARE.PATH].join(delimiter), CURL_HOME: directory }
const started = new Map<string, ReturnType<typeof startSamples>>()

/** Runs a sample. @returns its output */
async function runSample(language: string, text: string, env: Record<string, string>): Promise<string> {
  if (language === 'curl') {
    const options = { cwd: directory, env: { ...shared, ...env } }
    return (await runProgram('/bin/sh', ['-c', text], options)).stdout
  }
  const run = started.get(language) ?? startSamples(t, language, { cwd: directory, env: shared })
  started.set(language, run)
  return run(text, env)
}

const DOMAIN = 'shop.test'
const drawnAt = (now: Date) =>
  createDocs(V1_ROUTES, { publicUrl: base, port: 0, domain: DOMAIN, clock: () => now })
const { body: page } = await drawnAt(new Date()).page()

const MARKS: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&' }
const asText = (html: string): string =>
  html.replaceAll(/&(?:#x([0-9a-f]+)|(\w+));/gi, (_, hex?: string, name?: string) =>
    hex ? String.fromCodePoint(Number.parseInt(hex, 16)) : (MARKS[name ?? ''] ?? ''),
  )

type Listing = { section: string; language: string; text: string }

/** The listings of the page, with their sections and languages. */
const listings: Listing[] = page.split('<section>').flatMap((html) => {
  const [, section = ''] = /<h3 id="([^"]+)"/.exec(html) ?? []
  const found = html.matchAll(/(?:<h4>([^<]+)<\/h4>)?<pre tabindex="0"><code>(.*?)<\/code><\/pre>/gs)
  return [...found].map(([, language = '', text = '']) => ({ section, language, text: asText(text) }))
})

/** Creates a team for the samples of a language. */
async function readerOf(language: string) {
  const team = await makeTeam(service, { domain: DOMAIN })
  const news = await broadcastingOf(service, team)
  await news.contacts(['fay', 'gil', 'hal'])
  const [whatsapp, code] = [
    await makeTemplate(service, team.id),
    await makeTemplate(
      service,
      team.id,
      aTemplate({ buttons: [{ type: 'URL', text: 'Copy code', url: 'https://example.com/{{1}}' }] }),
    ),
  ]
  const env = {
    HELIOGRAPH_URL: base,
    HELIOGRAPH_KEY: team.key,
    RESEND_API_KEY: team.key,
    RESEND_BASE_URL: `${base}/v1`,
    TEMPLATE_ID: news.template_id,
    TOPIC_ID: news.topic_id,
  }
  const environment = async (section: string): Promise<Record<string, string>> => ({
    ...env,
    WHATSAPP_TEMPLATE_ID: section === 'one-time-passwords' ? code.id : whatsapp.id,
    ID: await idFor(section, { team, news, template: whatsapp.id }),
  })
  return {
    environment,
    /** Runs a listing. @returns its output */
    run: async ({ section, text }: Pick<Listing, 'section' | 'text'>, name = language) =>
      runSample(name, text, await environment(section)),
  }
}

type Made = { team: TestTeam; news: Awaited<ReturnType<typeof broadcastingOf>>; template: string }

/** Creates the object of a section's call. @returns its ID, or '' if the section needs none */
async function idFor(section: string, { team, news, template }: Made): Promise<string> {
  const later = { scheduled_at: new Date(Date.now() + 3_600_000).toISOString() }
  const made = async (path: string, body: object) => {
    const reply = await call('POST', path, { key: team.key, body: { ...body, ...later } })
    return String(reply.body.id ?? reply.body.data[0].id)
  }
  if (/^(cancel|reschedule)Email$|^scheduling$/.test(section))
    return made('/v1/emails', anEmail({ from: `hello@${DOMAIN}` }))
  if (/^(cancel|reschedule)Whatsapp/.test(section)) return made('/v1/whatsapp/messages', aMessage(template))
  if (!/^(get|change|delete|test|send|pause|resume|cancel)Broadcast$/.test(section)) {
    const { path = '' } = V1_ROUTES.find(({ about }) => about.id === section) ?? {}
    if (path.includes(':id')) throw new Error(`idFor in this file must create an object for ${section}`)
    return ''
  }
  const id = await news.create({ from: `news@${DOMAIN}`, rate_per_minute: 1 })
  if (/^(pause|resume|cancel)/.test(section)) await news.post(id, 'send', {})
  if (section === 'resumeBroadcast') await news.post(id, 'pause')
  return id
}

/**
 * Returns the statuses in the output of a sample. curl prints them after each response, the others before.
 */
const statusesIn = (language: string, printed: string): number[] =>
  [...printed.matchAll(language === 'curl' ? /^(\d{3})$/gm : /^(\d{3})(?= |$)/gm)].map(([, status]) =>
    Number(status),
  )

for (const language of LANGUAGES.filter(isInstalled)) {
  t.test(`each call of /docs runs as pasted: ${language}`, async (t) => {
    const reader = await readerOf(language)
    for (const { path, about } of V1_ROUTES) {
      const found = listings.filter((one) => one.section === about?.id && one.language === language)
      t.equal(found.length, 1, `${about?.id} has a sample`)
      for (const listing of found) {
        const printed = await reader.run(listing)
        const [status = 0, ...more] = statusesIn(language, printed)
        t.ok(status in (about?.answers ?? {}) && more.length === 0, `${path}: ${printed.slice(0, 300)}`)
        t.notMatch(printed, '"error"', path)
      }
    }
  })

  t.test(`each loop of the guides runs as pasted: ${language}`, async (t) => {
    const guides = listings.filter((one) => /^batch/.test(one.section) && one.language === language)
    t.equal(guides.length, { curl: 0, 'Node.js': 2, Python: 1 }[language])
    for (const listing of guides) {
      const team = await makeTeam(service, { domain: DOMAIN })
      const env = { HELIOGRAPH_URL: base, HELIOGRAPH_KEY: team.key }
      t.equal(await runSample(language, listing.text, env), '', listing.section)
      t.equal((await usedBy(service, team.id)).emails, 2, listing.section)
    }
  })
}

t.test('each call in a guide runs as pasted', { skip: missing.get('curl') ?? false }, async (t) => {
  const reader = await readerOf('curl')
  const isCurl = ({ language, text }: Listing) => language === '' && /^(curl|echo) /m.test(text)
  const guides = listings.filter(isCurl)
  t.strictSame([...new Set(guides.map(({ section }) => section))].sort(), [
    ...['attachments', 'copies', 'first-email', 'one-time-passwords', 'scheduling'],
  ])
  for (const listing of guides) {
    const printed = await reader.run(listing)
    const calls = listing.text.match(/^curl /gm)?.length
    const statuses = statusesIn('curl', printed)
    t.equal(statuses.length, calls, listing.section)
    for (const status of statuses) t.ok([200, 201].includes(status), `${listing.section}: ${printed}`)
  }
})

type PostmanItem = {
  name: string
  request: {
    method: string
    header: { key: string; value: string }[]
    url: { raw: string; host: string[]; path: string[]; query?: { key: string; value: string }[] }
    body?: { raw?: string }
    auth?: { type: string }
  }
}

t.test('each request of the Postman collection gets a documented response', async (t) => {
  const collection = JSON.parse((await drawnAt(new Date()).postman()).body) as {
    variable: { key: string; value: string }[]
    auth: { bearer: { value: string }[] }
    item: { item: PostmanItem[] }[]
  }
  const { environment } = await readerOf('Node.js')
  const items = collection.item.flatMap(({ item }) => item)
  for (const { about } of V1_ROUTES) {
    const item = items.find(({ name }) => name === about?.summary)
    const values = await environment(about?.id ?? '')
    const fill = (text: string) =>
      text.replaceAll(/\{\{([A-Z_]+)\}\}/g, (whole, name: string) => {
        t.ok(
          collection.variable.some(({ key }) => key === name),
          name,
        )
        return values[name] ?? whole
      })
    const { method, header, url, body, auth } = JSON.parse(fill(JSON.stringify(item?.request)))
    const query = new URLSearchParams(
      url.query?.map(({ key, value }: { key: string; value: string }) => [key, value]),
    )
    t.equal([...url.host, ...url.path].join('/') + (query.size > 0 ? `?${query}` : ''), url.raw)
    const token = auth?.type === 'noauth' ? '' : fill(`Bearer ${collection.auth.bearer[0]?.value}`)
    const response = await fetch(url.raw, {
      ...{ method, body: body && (body.raw ?? 'Invoice 1001') },
      headers: [
        ['Authorization', token],
        ...header.map((one: { key: string; value: string }) => [one.key, one.value]),
      ],
    })
    t.ok(response.status in (about?.answers ?? {}), `${item?.name}: ${await response.text()}`)
  }
})

t.test('the resend package’s attachments are sent as pasted', async (t) => {
  const [listing] = listings.filter(({ text }) => text.includes('await new Resend()'))
  for (const name of ['invoice.pdf', 'logo.png']) await writeFile(join(directory, name), name)
  const text = `${listing?.text.replace('await new Resend()', 'const sent = await new Resend()')}
    console.log(JSON.stringify(sent.error))`
  t.equal(await (await readerOf('Node.js')).run({ section: 'attachments', text }), 'null\n')
})

t.test('examples have the configured domain and future times', async (t) => {
  t.notOk(/\{\{(home|domain|later|day_later)\}\}/.test(page))
  const days = [new Date('2031-12-24T23:59:59Z'), new Date('2031-12-25T00:00:00Z')]
  let now = days[0] as Date
  const docs = createDocs(V1_ROUTES, { publicUrl: null, port: 80, domain: DOMAIN, clock: () => now })
  const before = await docs.page()
  t.match(before.body, '2032-01-07T09:00:00Z')
  t.match((await docs.openapi()).body, '2032-01-07T09:00:00Z')
  t.equal(await docs.page(), before, 'rendered once a day')
  now = days[1] as Date
  const after = await docs.page()
  t.match(after.body, '2032-01-08T09:00:00Z')
  t.not(after.headers.ETag, before.headers.ETag)
  t.notOk(/\{\{(domain|later)|\$[A-Z_]*ID/.test((await docs.openapi()).body))
})

t.test('the guide’s first email reaches an address that reports delivery', (t) => {
  const [, first] = listings.filter(({ section }) => section === 'first-email')
  t.match(first?.text, /"to":\["delivered@/)
  t.end()
})

t.test('the guide’s loop chooses its batch sizes by RateLimit', async (t) => {
  const paced = await makeTeam(service, { domain: 'paced.test', rate: 20 })
  const [sample] = SIZED_BATCH_SAMPLES
  const emails = Array.from({ length: 260 }, (_, index) => ({
    ...{ from: 'hello@paced.test', to: ['ana@example.org'], subject: 'Hello', html: '<p>Hello</p>' },
    idempotency_key: `${index}`,
  }))
  const calls: { emails: unknown[]; late: number }[] = []
  const program = `
    const [emails, calls] = [${JSON.stringify(emails)}, []]
    const real = fetch
    globalThis.fetch = async (url, init) => {
      const answer = await real(url, init)
      const { data } = await answer.clone().json()
      calls.push({ emails: JSON.parse(init.body).emails.length, late: data.filter(({ error }) => error).length })
      return answer
    }
    ${sample?.text}
    console.log(JSON.stringify(calls))`
  const { stdout } = await runProgram(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...bareEnvironment(), HELIOGRAPH_URL: base, HELIOGRAPH_KEY: paced.key },
  })
  calls.push(...JSON.parse(stdout))
  t.equal((await usedBy(service, paced.id)).emails, emails.length)
  t.ok(calls.length <= 6, JSON.stringify(calls))
  const late = calls.map(({ late }) => late)
  t.strictSame(late, Array(calls.length).fill(0), 'none comes too fast')
})

t.test('the batch sample retries incomplete responses and rate-limited items', async (t) => {
  for (const sample of BATCH_SAMPLES.filter(({ title }) => isInstalled(title))) {
    const asked: string[][] = []
    const server = createServer(async (request, response) => {
      const { emails } = (await json(request)) as { emails: { idempotency_key: string }[] }
      asked.push(emails.map(({ idempotency_key }) => idempotency_key))
      response.setHeader('Retry-After', '0')
      const fast = { code: 'rate_limited', message: 'too fast' }
      const data = emails.map((_, index) => (index === 1 ? { index, error: fast } : { index, id: 'x' }))
      const text = JSON.stringify({ data })
      response.setHeader('Content-Length', text.length)
      if (asked.length > 1) return void response.end(text)
      response.write(text.slice(0, 9), () => response.destroy())
    })
    const own = '[{"idempotency_key":"a"},{"idempotency_key":"b"}]'
    const emails = `${sample.title === 'Python' ? '' : 'const '}emails = ${own}\n`
    const HELIOGRAPH_URL = `http://127.0.0.1:${await portOf(t, server)}`
    await runSample(sample.title, emails + sample.text, { HELIOGRAPH_URL, HELIOGRAPH_KEY: 'x' })
    t.strictSame(asked, [['a', 'b'], ['a', 'b'], ['b']], sample.title)
  }
})
