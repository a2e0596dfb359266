/** Uploads that emails refer to, the storage that they use, and when stored bytes are deleted. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { number } from 'yup'
import { collectFiles } from '../../db/content/files/collect.ts'
import { row } from '../../db/postgres/rows.ts'
import { adminCli } from '../support/admin.ts'
import { aFile, base64, beginAttachments, sha } from '../support/attachments.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { anEmail, makeTeam, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, team, send, batch, stored } = await beginAttachments(t)

const upload = async (
  bytes: Uint8Array | string,
  { query = '?filename=a.pdf', key = team.key, headers = {} } = {},
) => service.call('POST', `/v1/attachments${query}`, { key, raw: bytes, headers })

t.test('an upload is stored unchanged for later emails', async (t) => {
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
  await service.database.query(sql.unsafe`update uploads set expires_at = now() where id = ${id}`)
  t.equal((await send([{ attachment_id: id }])).body.error.code, 'not_found')
})

t.test('requires a filename in the query or Content-Disposition', async (t) => {
  const named = async (disposition: string) =>
    (await upload('x', { query: '', headers: { 'Content-Disposition': disposition } })).body.filename
  t.equal(await named('attachment; filename="a b.pdf"'), 'a b.pdf')
  t.equal(await named("attachment; filename=x.pdf; filename*=UTF-8''%C3%A9.pdf"), 'é.pdf')
  const asBytes = (name: string) => Buffer.from(`attachment; filename="${name}"`).toString('latin1')
  for (const name of ['für März.pdf', 'Größe.pdf', 'счёт.pdf', '請求書.pdf'])
    t.equal(await named(asBytes(name)), name, 'as curl sends it')
  t.equal(await named('attachment; filename="d\xe9j\xe0.pdf"'), 'déjà.pdf', 'Latin-1, as RFC 6266 has it')
  t.equal(await named("attachment; filename*=UTF-8''%C3%83%C2%A9.pdf"), 'Ã©.pdf')
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
})

t.test('an upload over 25 MiB is payload_too_large and stores nothing', async (t) => {
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

t.test('100 concurrent uploads and sends never exceed the storage quota', async (t) => {
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
  t.equal((await send([{ attachment_id: kept?.body.id }], {}, own.key)).status, 201, 'kept ones cost nothing')
  const whole = await batch(
    [anEmail(), anEmail({ attachments: [aFile({ content: base64('x'.repeat(100)) })] })],
    own.key,
  )
  t.equal(whole.status, 402)
})

t.test('the CLI lists and saves attachments, and shows the storage', async (t) => {
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
  const nowhere = ['email', 'file', own.id, body.id, '1', '--out', join(out, 'b.bin')]
  t.match(await cli.fault(nowhere), /^Could not write \S+b\.bin: ENOTDIR/)
  t.match(await cli.json(['team', 'show', own.id]), { used: { storage: bytes.length + 8 } })
  await service.database.query(sql.unsafe`delete from files where team_id = ${own.id}`)
  t.match(await cli.fault(['email', 'file', own.id, body.id, '1', '--out', out]), /deleted/)
})

const { database } = service
/** Sets the last use of the team's files to some hours ago. */
const age = (of: Pick<TestTeam, 'id'>, hours: number) =>
  database.query(sql.unsafe`
    update files set last_used_at = service_time() - make_interval(hours => ${hours}) where team_id = ${of.id}`)
const finish = (id: string, status: string) =>
  database.query(sql.unsafe`update email_states set status = ${status} where id = ${id}`)
const collect = (days = 3) => collectFiles(database, days, new Date())

t.test('keeps files of a scheduled email until its cancellation', async (t) => {
  const own = await makeTeam(service)
  const { body } = await send([aFile()], { scheduled_at: new Date(Date.now() + 3_600_000) }, own.key)
  await age(own, 100)
  await collect()
  t.match(await stored(own), { files: 1 })
  t.equal((await service.call('POST', `/v1/emails/${body.id}/cancel`, { key: own.key })).status, 200)
  await collect()
  t.match(await stored(own), { files: 0 })
})

t.test('deletes unneeded files days after their last use', async (t) => {
  const own = await makeTeam(service)
  const { body } = await send([aFile()], {}, own.key)
  const kept = await upload('kept by an upload', { key: own.key })
  await age(own, 100)
  await collect()
  t.match(await stored(own), { files: 2, used: 25 }, 'unfinished mail and a live upload keep theirs')
  await finish(body.id, 'delivered')
  await database.query(sql.unsafe`update uploads set expires_at = now() where id = ${kept.body.id}`)
  await database.query(sql.unsafe`update files set kept_until = now() where kept_until is not null`)
  await age(own, 23)
  await collect(0)
  t.match(await stored(own), { files: 2 }, 'nothing younger than a day')
  await age(own, 100)
  await send([aFile({ filename: 'again.pdf' })], {}, own.key)
  await collect()
  t.strictSame(await stored(own), { files: 1, bytes: 8, chunks: 8, used: 8 })
  const uploads = await database.any(sql.unsafe`select id from uploads where team_id = ${own.id}`)
  t.strictSame(uploads, [])
})

t.test('a concurrent collector keeps used files and exact storage', async (t) => {
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
      // If a file is deleted between its look-up and its use, the response is a 503. An email never lacks its
      // bytes.
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

/** Sums up the ready files in one statement. */
const recount = (of: Pick<TestTeam, 'id'>) =>
  database.one(sql.type(row({ bytes: number(), chunks: number(), used: number() }))`
    select coalesce(sum(size), 0) as bytes, coalesce(sum((
        select sum(length(c.bytes)) from file_chunks c where c.team_id = f.team_id and c.file_id = f.id)), 0) as chunks,
      (select storage_used from allowances where team_id = ${of.id}) as used
    from files f where team_id = ${of.id} and state = 'ready'`)

t.test('an email can’t be requeued without its files', async (t) => {
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

t.test('an erasure deletes files that only this recipient received', async (t) => {
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
