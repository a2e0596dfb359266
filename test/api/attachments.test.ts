/** `attachments` of a send: what is taken, what is refused in which words, and what is stored of it. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import t from 'tap'
import { number, object } from 'yup'
import { collectFiles } from '../../db/content/files/collect.ts'
import { adminCli } from '../support/admin.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { anEmail, makeKey, makeTeam, startService, type TestTeam } from '../support/service.ts'

const service = await startService(t)
const team = await makeTeam(service)
const base64 = (bytes: string | Uint8Array): string => Buffer.from(bytes).toString('base64')
const sha = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const aFile = (changes: Record<string, unknown> = {}) => ({
  filename: 'invoice.pdf',
  content: base64('%PDF-1.7'),
  ...changes,
})
const send = (attachments: unknown, changes: Record<string, unknown> = {}, key = team.key) =>
  service.call('POST', '/v1/emails', { key, body: anEmail({ attachments, ...changes }) })
const batch = (emails: unknown[], key = team.key) =>
  service.call('POST', '/v1/emails/batch', { key, body: { emails } })

/** What is stored of a team, counted from the rows themselves. */
const stored = (of: Pick<TestTeam, 'id'>) =>
  service.database.one(sql.type(
    object({
      files: number().defined(),
      bytes: number().defined(),
      chunks: number().defined(),
      used: number().defined(),
    }),
  )`
    select count(*) as files, coalesce(sum(size), 0) as bytes,
      (select coalesce(sum(length(bytes)), 0) from file_chunks where team_id = ${of.id}) as chunks,
      (select storage_used from allowances where team_id = ${of.id}) as used
    from files where team_id = ${of.id}`)

t.test('the row shows what an email carries, and has no such key when there is nothing', async (t) => {
  const { status, body } = await send([
    aFile(),
    { filename: 'logo.png', content: base64('png'), content_id: 'logo' },
    { filename: 'e\u0301.txt', content: 'aGV5\r\naGV5', content_type: 'text/calendar; method=REQUEST' },
    { filename: 'mail.eml', content: { type: 'Buffer', data: [1, 2, 255] } },
  ])
  t.equal(status, 201)
  t.strictSame(body.attachments, [
    {
      filename: 'invoice.pdf',
      content_type: 'application/pdf',
      size: 8,
      content_id: null,
      sha256: sha('%PDF-1.7'),
    },
    { filename: 'logo.png', content_type: 'image/png', size: 3, content_id: 'logo', sha256: sha('png') },
    {
      filename: '\u00e9.txt',
      content_type: 'text/calendar; method=REQUEST',
      size: 6,
      content_id: null,
      sha256: sha('heyhey'),
    },
    {
      filename: 'mail.eml',
      content_type: 'application/octet-stream',
      size: 3,
      content_id: null,
      sha256: sha(Uint8Array.of(1, 2, 255)),
    },
  ])
  for (const none of [undefined, null, []]) t.notOk('attachments' in (await send(none)).body)
})

t.test('what is no attachment is bad_request, and its field is named with its path', async (t) => {
  const wrong: [unknown, string][] = [
    ['x', 'attachments must be an array'],
    [Array(21).fill(aFile()), 'attachments must have at most 20'],
    [[5], 'attachments[0] must be an object'],
    [[aFile(), { content: 'QQ==' }], 'attachments[1].filename is required'],
    [[{ filename: 'a.txt' }], 'attachments[0].content or attachment_id is required'],
    [[aFile({ attachment_id: '01920000-0000-7000-8000-000000000000' })], 'attachments[0].attachment_id'],
    [[{ attachment_id: 'x' }], 'attachments[0].attachment_id must be a UUID'],
    ...['path', 'url', 'href'].map((name): [unknown, string] => [
      [{ filename: 'a.txt', [name]: 'https://example.com/a' }],
      `attachments[0].${name} is not supported: give content`,
    ]),
    ...['', 'QQ', 'QQ=', 'QR==', '=', 'a b=', 'QQ==QQ==', 5, { type: 'Buffer', data: [] }].map(
      (content): [unknown, string] => [[aFile({ content })], 'attachments[0].content must'],
    ),
    [[aFile({ content: { type: 'Buffer', data: [256] } })], 'attachments[0].content must'],
    [
      [aFile({ content: 'data:text/plain;base64,QQ==' })],
      'attachments[0].content must be base64 without a data:',
    ],
    [[aFile({ content: 'a-_b' })], 'not base64url'],
    ...['a/b', 'a\\b', '.', '..', '', 'a\nb', 'a\u202eb', 'é'.repeat(128), 5].map(
      (filename): [unknown, string] => [[aFile({ filename })], 'attachments[0].filename'],
    ),
    [[aFile({ filename: 'setup.EXE' })], 'attachments[0].filename must not end in .exe'],
    ...[
      'pdf',
      'a/b/c',
      'multipart/mixed',
      'message/rfc822',
      'text/plain\r\nX: y',
      'text/é',
      `a/${'b'.repeat(254)}`,
    ].map((content_type): [unknown, string] => [[aFile({ content_type })], 'attachments[0].content_type']),
    [[aFile({ content_id: 'a b' })], 'attachments[0].content_id'],
    [[aFile({ content_id: 'a' }), aFile({ content_id: 'a' })], 'attachments[1].content_id must be unique'],
  ]
  for (const [attachments, words] of wrong) {
    const { status, body } = await send(attachments)
    t.equal(`${status} ${body.error?.code}`, '400 bad_request', JSON.stringify(attachments).slice(0, 80))
    t.ok(body.error?.message.includes(words), body.error?.message)
  }
  const { body } = await batch([anEmail(), anEmail({ attachments: [aFile({ content: '*' })] })])
  t.equal(body.data[1].error.message.slice(0, 31), 'emails[1].attachments[0].conten')
})

t.test('the largest name and type are taken', async (t) => {
  const content_type = `text/x; a="${'b'.repeat(243)}"`
  t.equal(content_type.length, 255)
  t.equal((await send([aFile({ filename: 'é'.repeat(127), content_type })])).status, 201)
})

t.test('a content is stored once for a team, in one email or in a hundred', async (t) => {
  const own = await makeTeam(service)
  const content = base64('x'.repeat(600_000))
  const attachments = [aFile({ content }), aFile({ content, filename: 'again.pdf' })]
  const emails = Array.from({ length: 3 }, () => anEmail({ attachments }))
  t.ok((await batch(emails, own.key)).body.data.every((item: { id?: string }) => item.id))
  t.equal((await send(attachments, {}, own.key)).status, 201)
  t.strictSame(await stored(own), { files: 1, bytes: 600_000, chunks: 600_000, used: 600_000 })
  const other = await makeTeam(service)
  t.equal((await send(attachments, {}, other.key)).status, 201)
  t.equal((await stored(other)).used, 600_000)
})

t.test('sends of one content that arrive together store and charge it once', async (t) => {
  const own = await makeTeam(service)
  const replies = await Promise.all(Array.from({ length: 12 }, () => send([aFile()], {}, own.key)))
  t.ok(replies.every(({ status }) => status === 201))
  t.strictSame(await stored(own), { files: 1, bytes: 8, chunks: 8, used: 8 })
})

t.test('what is refused or replayed stores nothing', async (t) => {
  const own = await makeTeam(service, { email_limit: 1 })
  const nothing = { files: 0, bytes: 0, chunks: 0, used: 0 }
  const key = { idempotency_key: 'k' }
  t.equal((await send([aFile()], { from: 'a@example.net' }, own.key)).status, 422)
  t.equal((await send([aFile()], { headers: { To: 'x' } }, own.key)).body.error.code, 'invalid_headers')
  t.strictSame(await stored(own), nothing)
  t.equal((await send(undefined, key, own.key)).status, 201)
  t.equal((await send([aFile()], key, own.key)).status, 200)
  t.equal((await send([aFile()], {}, own.key)).body.error.code, 'quota_exceeded')
  t.strictSame(await stored(own), nothing)
})

t.test('a message that would be too large is refused after its shape and before the rest', async (t) => {
  const content = Buffer.alloc(7_000_000).toString('base64')
  service.deps.attachments.message_bytes = 9_000_000
  t.teardown(() => {
    service.deps.attachments.message_bytes = 25 * 1024 * 1024
  })
  const one = await send([aFile({ content })], { from: 'nobody' })
  t.equal(`${one.status} ${one.body.error.code}`, '413 payload_too_large')
  const two = await send([aFile({ content, filename: 'a.js' })], { from: 'nobody' })
  t.equal(two.body.error.code, 'bad_request')
  const { body } = await batch([anEmail(), anEmail({ attachments: [aFile({ content })] })])
  t.ok(body.data[0].id)
  t.equal(body.data[1].error.code, 'payload_too_large')
  t.ok(body.data[1].error.message.startsWith('emails[1].attachments'))
})

t.test('a replay shows the attachments of the row', async (t) => {
  const first = await send([aFile()], { idempotency_key: 'replayed' })
  const again = await send([aFile({ filename: 'b.pdf' })], { idempotency_key: 'replayed' })
  t.equal(again.status, 200)
  t.strictSame(again.body.attachments, first.body.attachments)
})

t.test('an unknown upload is not_found, after the template and before its slots', async (t) => {
  const missing = [{ attachment_id: '01920000-0000-7000-8000-000000000000' }]
  const { status, body } = await send(missing)
  t.equal(`${status} ${body.error.code}`, '404 not_found')
  t.ok(body.error.message.startsWith('attachments[0].attachment_id'))
  const template_id = '01920000-0000-7000-8000-000000000001'
  const none = await send(missing, { template_id })
  t.ok(none.body.error.message.startsWith('template_id'))
  t.equal((await send(missing, { from: 'a@example.net' })).status, 422)
  t.equal((await send(missing, {}, await makeKey(service, team.id, { domain: 'other.test' }))).status, 403)
})

const upload = async (
  bytes: Uint8Array | string,
  { query = '?filename=a.pdf', key = team.key, headers = {} } = {},
) => service.call('POST', `/v1/attachments${query}`, { key, raw: bytes, headers })

t.test('an upload is stored as it came, and emails of its team can refer to it', async (t) => {
  const bytes = Buffer.alloc(700_000, 'abc')
  const headers = { 'Content-Type': 'application/x-thing; v=1' }
  const { status, body } = await upload(bytes, { query: '?filename=caf%C3%A9.bin', headers })
  t.equal(status, 201)
  t.match(body, {
    filename: 'café.bin',
    content_type: 'application/x-thing; v=1',
    size: 700_000,
    sha256: sha(bytes),
  })
  t.ok(new Date(body.expires_at).getTime() - Date.now() > 6.9 * 86_400_000)
  const { id, expires_at: _, ...shown } = body
  const sent = await send([{ attachment_id: id }, { attachment_id: id, filename: 'b.txt', content_id: 'b' }])
  t.strictSame(sent.body.attachments, [
    { ...shown, content_id: null },
    { ...shown, filename: 'b.txt', content_id: 'b' },
  ])
  const other = await makeTeam(service)
  t.equal((await send([{ attachment_id: id }], {}, other.key)).status, 404)
  await service.database.query(sql.unsafe`update attachments set expires_at = now() where id = ${id}`)
  t.equal((await send([{ attachment_id: id }])).body.error.code, 'not_found')
})

t.test('the name comes by the query or by Content-Disposition; without one it is refused', async (t) => {
  const named = async (disposition: string) =>
    (await upload('x', { query: '', headers: { 'Content-Disposition': disposition } })).body.filename
  t.equal(await named('attachment; filename="a b.pdf"'), 'a b.pdf')
  t.equal(await named("attachment; filename=x.pdf; filename*=UTF-8''%C3%A9.pdf"), 'é.pdf')
  const refused = [
    await upload('x', { query: '' }),
    await upload('x', { query: '?filename=' }),
    await upload('x', { query: '?filename=a.exe' }),
    await upload('x', { query: '?filename=a%2Fb' }),
    await upload('', {}),
    await upload('x', { headers: { 'Content-Type': 'multipart/form-data; boundary=x' } }),
  ]
  for (const { status, body } of refused) t.equal(`${status} ${body.error.code}`, '400 bad_request')
  const form = await upload('x', {
    query: '',
    headers: { 'Content-Type': 'multipart/form-data; boundary=x' },
  })
  t.match(form.body.error.message, 'must not be multipart', 'before what a form has in its parts')
  const untyped = await upload('x', { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } })
  t.equal(untyped.body.content_type, 'application/pdf', 'as curl sends a file without knowing its type')
  const key = await makeKey(service, team.id, { scopes: ['contacts:read'] })
  t.equal((await upload('x', { key })).body.error.code, 'insufficient_scope')
})

t.test('an upload beyond 25 MiB is payload_too_large and leaves nothing', async (t) => {
  const own = await makeTeam(service)
  const { status, body } = await upload(Buffer.alloc(25 * 1024 * 1024 + 1), { key: own.key })
  t.equal(`${status} ${body.error.code}`, '413 payload_too_large')
  const chunked = new ReadableStream({
    pull(controller) {
      controller.enqueue(Buffer.alloc(5 * 1024 * 1024 + 1))
      pulled += 1
      if (pulled === 5) controller.close()
    },
  })
  let pulled = 0
  const reply = await fetch(`${service.base}/v1/attachments?filename=a`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${own.key}` },
    body: chunked,
    duplex: 'half',
  } as RequestInit)
  t.equal(reply.status, 413)
  t.strictSame(await stored(own), { files: 0, bytes: 0, chunks: 0, used: 0 })
})

t.test('storage is never over by a byte under 100 uploads and sends at once', async (t) => {
  const own = await makeTeam(service, { storage_gb: 0.00001 })
  const calls = Array.from({ length: 100 }, (_, index) => {
    const bytes = Buffer.alloc(301, `file ${index} `)
    const attachments = [aFile({ content: base64(bytes) })]
    return index % 2 ? upload(bytes, { key: own.key }) : send(attachments, {}, own.key)
  })
  const replies = await Promise.all(calls)
  t.strictSame([...new Set(replies.map(({ status }) => status))].toSorted(), [201, 402])
  t.equal(replies.filter(({ status }) => status === 201).length, 33)
  t.strictSame(await stored(own), { files: 33, bytes: 9_933, chunks: 9_933, used: 9_933 })
  const refused = replies.find(({ status }) => status === 402)
  t.equal(refused?.body.error.code, 'quota_exceeded')
  t.match(refused?.body.error.message, /10000 bytes.*301/)
  const kept = replies.find(({ status, body }) => status === 201 && body.expires_at)
  t.equal(
    (await send([{ attachment_id: kept?.body.id }], {}, own.key)).status,
    201,
    'what is there costs nothing',
  )
  const whole = await batch(
    [anEmail(), anEmail({ attachments: [aFile({ content: base64('x'.repeat(100)) })] })],
    own.key,
  )
  t.equal(whole.status, 402)
})

t.test(
  'the CLI lists the attachments of an email, writes one as it came, and shows its storage',
  async (t) => {
    const own = await makeTeam(service)
    const cli = adminCli({ DATABASE_URL: service.url, SECRET_KEY })
    const bytes = Buffer.alloc(262_200 * 5 + 1, 'bytes ')
    const { body } = await send([aFile(), aFile({ filename: 'b.bin', content: base64(bytes) })], {}, own.key)
    const shown = await cli.json(['email', 'show', own.id, body.id])
    t.strictSame(shown.attachments, body.attachments)
    for (const listing of [
      ['list', own.id],
      ['find', '--team', own.id],
    ]) {
      const [listed] = await cli.json(['email', ...listing])
      t.strictSame(listed.attachments, body.attachments, listing.join(' '))
    }
    const out = join(t.testdir(), 'b.bin')
    t.strictSame(await cli.json(['email', 'file', own.id, body.id, '1', '--out', out]), {
      filename: 'b.bin',
      content_type: 'application/octet-stream',
      size: bytes.length,
      sha256: sha(bytes),
    })
    t.ok((await readFile(out)).equals(bytes))
    t.match(await cli.json(['team', 'show', own.id]), { used: { storage: bytes.length + 8 } })
    await service.database.query(sql.unsafe`delete from files where team_id = ${own.id}`)
    t.match(await cli.fault(['email', 'file', own.id, body.id, '1', '--out', out]), /deleted/)
  },
)

const { database } = service
/** Pretends that the team's files were last used some hours ago. */
const age = (of: Pick<TestTeam, 'id'>, hours: number) =>
  database.query(sql.unsafe`
    update files set last_used_at = service_time() - make_interval(hours => ${hours}) where team_id = ${of.id}`)
const finish = (id: string, status: string) =>
  database.query(sql.unsafe`update email_states set status = ${status} where id = ${id}`)
const collect = (days = 3) => collectFiles(database, days, new Date())

t.test('bytes go days after their last use, but not while a mail or an upload needs them', async (t) => {
  const own = await makeTeam(service)
  const { body } = await send([aFile()], {}, own.key)
  const kept = await upload('kept by an upload', { key: own.key })
  await age(own, 100)
  await collect()
  t.match(await stored(own), { files: 2, used: 25 }, 'unfinished mail and a live upload keep theirs')
  await finish(body.id, 'delivered')
  await database.query(sql.unsafe`update attachments set expires_at = now() where id = ${kept.body.id}`)
  await age(own, 23)
  await collect(0)
  t.match(await stored(own), { files: 2 }, 'nothing younger than a day')
  await age(own, 100)
  await send([aFile({ filename: 'again.pdf' })], {}, own.key)
  await collect()
  t.strictSame(await stored(own), { files: 1, bytes: 8, chunks: 8, used: 8 })
  const uploads = await database.any(sql.unsafe`select id from attachments where team_id = ${own.id}`)
  t.strictSame(uploads, [])
})

t.test('a collector in a loop takes nothing that a send needs, and storage equals a recount', async (t) => {
  const own = await makeTeam(service)
  let sending = true
  const collecting = (async () => {
    while (sending) {
      await age(own, 100)
      await collect()
    }
  })()
  const ids: string[] = []
  let taken = 0
  for (let round = 0; round < 15; round += 1) {
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        send([aFile({ content: base64(`content ${n % 3}`) })], {}, own.key),
      ),
    )
    for (const { status, body } of replies) {
      // A file that goes between its look-up and its use is a 503 to be retried: never a mail without its bytes.
      if (status === 201) ids.push(body.id)
      else t.equal(status, 503)
    }
    const missing = await database.any(sql.unsafe`
      select e.id from emails e join email_files n on n.team_id = e.team_id and n.email_id = e.id
      where e.team_id = ${own.id} and e.unfinished and not exists (
        select from files f where f.team_id = n.team_id and f.sha256 = n.sha256 and f.state = 'ready')`)
    t.strictSame(missing, [])
    const { bytes, chunks, used } = await recount(own)
    t.equal(used, bytes)
    t.equal(chunks, bytes)
    taken += ids.length
    await Promise.all(ids.splice(0).map((id) => finish(id, 'delivered')))
  }
  sending = false
  await collecting
  t.ok(taken > 0)
  await age(own, 100)
  await collect()
  t.strictSame(await stored(own), { files: 0, bytes: 0, chunks: 0, used: 0 })
})

/** What is ready, in one look. */
const recount = (of: Pick<TestTeam, 'id'>) =>
  database.one(sql.type(
    object({ bytes: number().defined(), chunks: number().defined(), used: number().defined() }),
  )`
    select coalesce(sum(size), 0) as bytes, coalesce(sum((
        select sum(length(c.bytes)) from file_chunks c where c.team_id = f.team_id and c.file_id = f.id)), 0) as chunks,
      (select storage_used from allowances where team_id = ${of.id}) as used
    from files f where team_id = ${of.id} and state = 'ready'`)

t.test('a mail whose bytes are gone is not requeued, and they are named', async (t) => {
  const own = await makeTeam(service)
  const cli = adminCli({ DATABASE_URL: service.url, SECRET_KEY })
  const { body } = await send([aFile()], {}, own.key)
  await finish(body.id, 'bounced')
  await age(own, 100)
  t.match(await cli.json(['email', 'requeue', own.id, body.id, '--force']), { status: 'queued' })
  await finish(body.id, 'bounced')
  await collect()
  t.match(await stored(own), { files: 1 }, 'its requeue was a use')
  await age(own, 100)
  await collect()
  t.match(await cli.fault(['email', 'requeue', own.id, body.id, '--force']), /deleted: invoice\.pdf/)
  t.match(await cli.json(['email', 'requeue', own.id, '--status', 'bounced', '--force']), { requeued: 0 })
})

t.test('erasing a person takes the files sent to that person alone', async (t) => {
  const own = await makeTeam(service)
  const cli = adminCli({ DATABASE_URL: service.url, SECRET_KEY })
  const to = ['erased@example.com']
  const alone = await send([aFile(), aFile({ content: base64('to him alone') })], { to }, own.key)
  await send([aFile()], { to: ['ben@example.com'] }, own.key)
  await send([aFile({ content: base64('waits') })], { to }, own.key)
  await finish(alone.body.id, 'delivered')
  await cli.json(['contact', 'erase', own.id, 'erased@example.com'])
  t.strictSame(await stored(own), { files: 1, bytes: 8, chunks: 8, used: 8 })
})
