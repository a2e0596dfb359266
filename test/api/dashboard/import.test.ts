/** Imports of contacts from CSV, with the page, the queue and a worker. */
import { sql } from 'slonik'
import { continueBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { idNow } from '../../../db/process/ids.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { startImportPages } from '../../support/import-pages.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const pages = await startImportPages(t)
const { service, database, call, team, lastEntry, editor, importPath, known, create } = pages
const { uploaded, start, finish } = pages

/** Uploads a file and starts its import with the default mapping. @returns the page's path. */
async function started(name: string, file: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const draft = await uploaded(file, importPath, name)
  await start(draft)
  return draft
}

t.test('imports valid records, and returns the others with reasons', async (t) => {
  const lines = Array.from({ length: 1_010 }, (_, at) =>
    at % 101 === 7 ? `not an address ${at},"Town, ""${at}"""` : `person${at}@example.com,"Town, ""${at}"""`,
  )
  const progress = await started('people.csv', `Email,city\r\n${lines.join('\r\n')}\r\n`)
  shows(t, await editor.get(progress), /people\.csv running .*0 of 1,010/)
  const id = progress.split('/').at(-1) ?? ''
  const isPartly = async () => / 1,000 of 1,010/.test(textOf((await editor.get(progress)).html))
  while (!(await isPartly())) await continueBackgroundJob(service.deps, id, async () => {})
  const running = await editor.get(progress)
  shows(
    t,
    running,
    /running .*Being imported 1,000 of 1,010 .*10 records rejected so far .*not an address 7 /,
  )
  t.notMatch(textOf(running.html), 'import that file', 'only once it has ended')
  await startWorker(t, service)
  await until('it is done', async () => (await editor.get(progress)).html.includes('1,010 of 1,010'))
  shows(t, await editor.get(progress), /people\.csv done .*1,000 contacts stored/)
  shows(
    t,
    await editor.get(progress),
    new RegExp(`Started by ${editor.email} Started .* Ended .* Took .* ID ${id}`),
  )
  const file = await editor.get(`${progress}/refused.csv`)
  t.match(file.headers.get('content-disposition'), 'attachment')
  const refused = file.html.trim().split('\r\n')
  t.equal(refused.length, 11)
  t.match(refused[0], /^\uFEFF?Email,city,row,reason$/)
  t.match(refused[1], /^not an address 7,"Town, ""7""",9,Email must be an email address/)
  const contact = await known('person9@example.com')
  t.match(contact, { properties: { city: 'Town, "9"' }, status: 'subscribed' })
  shows(t, await editor.get(importPath), /people\.csv/)
  const others = await editor.get(`/teams/${team.id}/suppressions/import`)
  t.notMatch(others.html, /people\.csv/, 'an import of contacts')
  const operator = await signedIn(service, { operator: true })
  await operator.get(`${progress}/refused.csv`)
  t.match(await lastEntry(), { actor: operator.email, action: 'contact.export' })
})

t.test('lists imports of one purpose despite many newer others', async (t) => {
  const draft = await uploaded('email\nolder@example.com\n', importPath, 'older.csv')
  const ids = sql.array(Array.from({ length: 25 }, idNow), 'uuid')
  await database.query(sql.unsafe`
    insert into contact_imports (team_id, id, file_name, records, created_by, created_at, draft, mapping, encoding)
    select team_id, new.id, 'newer.csv', records, created_by, created_at, false,
      mapping || '{"suppress": {"as": "bounced", "detail": ""}}', encoding
    from contact_imports i, unnest(${ids}) new (id) where i.id = ${draft.split('/').at(-1) ?? ''}`)
  const list = await editor.get(importPath)
  shows(
    t,
    list,
    new RegExp(`older\\.csv open to continue · by ${editor.email} not started 1 record just now`),
  )
  t.notMatch(list.html, 'newer.csv')
  const others = await editor.get(`/teams/${team.id}/suppressions/import`)
  shows(t, others, 'newer.csv')
  t.notMatch(others.html, 'older.csv')
})

t.test('rejects an invalid file without storing it', async (t) => {
  for (const [text, words, name = 'bad.csv'] of [
    ['', /choose a CSV file/i, ''],
    ['', /file is empty/],
    ['email\n', /no records/],
    ['email\na\u0000@example.com', /NUL/],
  ] as const) {
    const answer = await editor.upload(importPath, name, text)
    t.equal(answer.status, 400, text)
    shows(t, answer, words)
  }
  t.notMatch((await editor.get(importPath)).html, /bad\.csv/)
})

/** Imports a file and waits until it is done. @returns the page's path and html. */
async function imported(file: string | Uint8Array<ArrayBuffer>) {
  const progress = await started('file.csv', file)
  return { progress, html: (await finish(progress)).html }
}

const propertiesOf = async (email: string) => (await known(email))?.properties

t.test('detects the encoding and the separator', async (t) => {
  const bytes = (text: string, encoding: BufferEncoding) => new Uint8Array(Buffer.from(text, encoding))
  const swapped = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le').swap16())
  const text = (at: number, by = ',') =>
    `email${by}name${by}city\nenc${at}@example.com${by}José${by}"Köln; a, b"\n`
  const files = [
    bytes(text(0), 'utf8'),
    bytes(`\ufeff${text(1, ';')}`, 'utf8'),
    bytes(`\ufeff${text(2, '\t')}`, 'utf16le'),
    swapped(`\ufeff${text(3)}`),
    bytes(text(4, ';'), 'utf16le'),
    bytes(text(5, '\t'), 'latin1'),
  ]
  for (const [at, file] of files.entries()) {
    await imported(file)
    t.strictSame(await propertiesOf(`enc${at}@example.com`), { name: 'José', city: 'Köln; a, b' }, String(at))
  }
})

t.test('rejected records have their row number, and can be imported', async (t) => {
  const source = `email,note,phone\nfine@example.com,"two\nlines",1\n\nbad.example.com,"=1, '+2",+15551234567\n`
  const { progress } = await imported(source)
  const listed = await editor.get(progress)
  shows(t, listed, /Row Column Value Why 4 email bad\.example\.com Must be an email address/)
  const { html: refused } = await editor.get(`${progress}/refused.csv`)
  await imported(refused.replace('bad.', 'bad@'))
  t.strictSame(await propertiesOf('bad@example.com'), { note: `=1, '+2`, phone: '+15551234567' })
})

t.test('imports our own export, and rejects a wrong status', async (t) => {
  const properties = { name: ' Ana ', phone: '+15551234567', "it's": "'=1" }
  await create('Own@example.com', properties)
  await call('POST', '/v1/contacts/Own@example.com/unsubscribe', { key: team.key })
  const { html: file } = await editor.get(`/teams/${team.id}/contacts.csv?q=own%40`)
  await imported(file)
  t.match(await known('own@example.com'), { properties, status: 'unsubscribed' })
  await call('DELETE', '/v1/contacts/Own@example.com', { key: team.key })
  const { progress } = await imported(file)
  const words = /status unsubscribed Must match the contact \(subscribed\) or be left out/
  shows(t, await editor.get(progress), words)
  t.equal(await known('own@example.com'), null)
})

t.test('only rejects the row with too many cells', async (t) => {
  const rows = ['a@wide.test,Graz,', 'b@wide.test,Graz,8010,x', 'c@wide.test,Wien', 'd@wide.test']
  const { progress } = await imported(`email,city\n${rows.join('\n')}\n`)
  const page = await editor.get(progress)
  shows(t, page, /3 contacts stored\. Show them 1 record rejected/)
  shows(t, page, /3 – 8010 x The row has 4 cells, but the first row has 2\. Put values/)
  t.strictSame(await propertiesOf('a@wide.test'), { city: 'Graz' })
  t.strictSame(await propertiesOf('d@wide.test'), {})
  const { html } = await editor.get(`${progress}/refused.csv`)
  t.match(html, /\r\nb@wide\.test,Graz,3,"The row has 4 cells, but [^"]*",8010,x\r\n/)
  shows(t, await editor.get((await imported(html)).progress), /2 – 8010 x The row has 4 cells/)
  await imported(html.replace(/,8010,x/, ''))
  t.strictSame(await propertiesOf('b@wide.test'), { city: 'Graz' })
})

t.test('counts new, updated, repeated and rejected records', async (t) => {
  await create('known@true.test')
  const many = Array.from({ length: 1_050 }, (_, at) => `true${at}@true.test;Ort ${at}`)
  const odd = `<b>${'x'.repeat(150)}`
  const rows = [
    'Known@true.test;Graz',
    'true0@true.test;Wien',
    `${odd};Linz`,
    ...many,
    'true7@true.test;Graz',
  ]
  const { progress } = await imported(`E-Mail-Adresse;Ort\n${rows.join('\n')}\n`)
  const page = await editor.get(progress)
  shows(t, page, /New contacts 1,050 Updated 1 Repeated 2 .*Rejected 1/)
  shows(t, page, /1,051 contacts stored\. Show them 1 record rejected/)
  t.match(page.html, `&lt;b&gt;${'x'.repeat(97)}…`)
  shows(t, page, /Row Column Value Why 4 E-Mail-Adresse <b>x+… Must be an email address/)
  const { html } = await editor.get(`${progress}/refused.csv`)
  t.match(html, `${odd},Linz,4,E-Mail-Adresse must be an email address`)
  t.strictSame(await propertiesOf('true7@true.test'), { Ort: 'Graz' }, 'the last of them counts')
})

/** A file that is read in several slices, with a record longer than a slice. */
const longFile = (last: string): string => {
  const long = Array.from({ length: 3 }, () => 'ä"",\n'.repeat(10_000)).join('","')
  const records = Array.from({ length: 2_400 }, (_, at) => {
    const note = at === 1_200 ? long : `note ${at} `.repeat(12)
    return `long${at}@example.com,"${note}"`
  })
  return ['email,note,more,most', ...records, last].join('\r\n')
}

t.test('workers read long files in slices, and survive kills', async (t) => {
  const progress = await started('long.csv', longFile('"bad one",x'))
  shows(t, await editor.get(progress), /Being read [\d,]+ records so far/)
  const id = progress.split('/').at(-1) ?? ''
  const kill = () =>
    continueBackgroundJob(service.deps, id, async () => {
      throw new Error('killed')
    })
  await t.rejects(kill(), /killed/)
  for (let isRead = false; !isRead; isRead = / 0 of 2,401/.test(textOf((await editor.get(progress)).html)))
    await continueBackgroundJob(service.deps, id, async () => {})
  await t.rejects(kill(), /killed/, 'among its upserts, too')
  await continueBackgroundJob(service.deps, id, async () => {})
  shows(
    t,
    await editor.get(progress),
    /Being imported 1,000 of 2,401 (?:[Aa]bout [\d,]+ records a minute, done in about [\w ]+ )?New contacts 1,000 /,
  )
  const done = await finish(progress)
  shows(t, done, /2,399 contacts stored\. Show them .*2,402 email bad one Must be .*2,401 of 2,401 /)
  const { html: refused } = await editor.get(`${progress}/refused.csv`)
  t.ok(refused.endsWith('bad one,x,,,2402,email must be an email address\r\n'))
  t.strictSame(await propertiesOf('long2399@example.com'), { note: 'note 2399 '.repeat(12).trim() })
  const entry = { action: 'contact.import', subject: 'long.csv', detail: '2 rejected' }
  t.match(await lastEntry(), { actor: editor.email, ...entry })
})

t.test('a stray or unclosed quote only rejects its own record', async (t) => {
  const long = Array.from({ length: 35 }, (_, at) => `long${at}@quote.test,${'x'.repeat(2_000)}`)
  const lost: Record<number, string> = {
    3: 'b@quote.test,The "Best" Shop',
    4: 'c@quote.test,"TV 27" to 31""',
    5: 'd@quote.test   , "{""k"": true}"',
    6: 'e@quote.test,"open',
    8: 'g@quote.test,"open for more than 64 KB',
    44: 'h@quote.test,x"',
    45: 'i@quote.test,"open to the end',
  }
  const lines = ['email,note', 'a@quote.test,Plain', lost[3], lost[4], lost[5], lost[6]]
  lines.push('f@quote.test,"Quoted, fine"', lost[8], ...long, lost[44], lost[45], 'last@quote.test,Last')
  const { progress } = await imported(lines.join('\n'))
  const page = await editor.get(progress)
  shows(t, page, /38 contacts stored\. Show them 7 records rejected/)
  for (const row of [3, 4, 5])
    shows(t, page, new RegExp(` ${row} – [b-d]@quote\\.test .* a quote inside a value`))
  for (const row of [8, 45])
    shows(t, page, new RegExp(` ${row} – [gi]@quote\\.test .* a quote that isn't closed`))
  t.strictSame(await propertiesOf('f@quote.test'), { note: 'Quoted, fine' })
  for (const email of ['long0', 'long34', 'last']) t.ok(await propertiesOf(`${email}@quote.test`), email)
  const { html: refused } = await editor.get(`${progress}/refused.csv`)
  const rows = [...refused.matchAll(/,(\d+),"?The row has a quote/g)].map(([, row]) => row)
  t.strictSame(rows, Object.keys(lost))
  await imported(refused)
  t.strictSame(await propertiesOf('b@quote.test'), { note: 'The "Best" Shop' })
})

t.test('a line break inside a cell counts as one line', async (t) => {
  for (const [at, end] of ['\n', '\r\n', '\r'].entries()) {
    const lines = ['email,note', `breaks${at}@example.com,"1`, '', '3"', 'bad one,x']
    const { progress } = await imported(lines.join(end))
    shows(t, await editor.get(progress), /Row Column Value Why 3 email bad one Must be an email address/)
    const broken = await imported([...lines, 'broken@example.com,"a"b'].join(end))
    shows(t, broken, / 4 – broken@example\.com "a"b /)
  }
})
