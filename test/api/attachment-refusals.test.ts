/**
 * Rejected attachments: the order of errors, what remains stored, and the statements that attachments need.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { sql } from 'slonik'
import { deleteAbandonedFiles } from '../../db/content/files/files.sql.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { beginAttachments } from '../support/attachments.ts'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { anEmail, makeKey, makeTeam, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { until } from '../support/worker.ts'

const { service, stored } = await beginAttachments(t)
const GONE = '01920000-0000-7000-8000-000000000000'
const content = Buffer.alloc(3_000, 'bytes ').toString('base64')
const file = (changes: Record<string, unknown> = {}) => ({ filename: 'a.pdf', content, ...changes })
const NOTHING = { files: 0, bytes: 0, chunks: 0, used: 0 }

t.test('errors have one order, in single sends and batches', async (t) => {
  const team = await makeTeam(service, { storage_gb: 0.000001, email_limit: 0 })
  const key = await makeKey(service, team.id, { domain: 'other.test' })
  service.deps.attachments.message_bytes = 5_000
  t.teardown(() => {
    service.deps.attachments.message_bytes = 25 * 1024 * 1024
  })
  const at = { tx: service.database, now: new Date(), actor: 'cli' }
  const template = await saveTemplate(at, team.id, { name: 'A', html: '<p>{{name}}</p>', text: '' })
  const small = (attachments: unknown[]) => ({ attachments, html: '<p>Hi</p>' })
  const faults: [code: string, words: string, cure: Record<string, unknown>, as?: 'team'][] = [
    ['bad_request', 'attachments[0].content_type', { attachments: [file({ filename: 'x.exe' }), file()] }],
    ['bad_request', 'subject', { subject: 'Hello' }],
    [
      'bad_request',
      "attachments[0].filename can't have the extension .exe",
      { attachments: [file(), file()] },
    ],
    ['payload_too_large', 'attachments must be smaller', small([{ attachment_id: GONE }])],
    ['invalid_from', '', { from: 'a@example.net' }],
    ['invalid_headers', '', { headers: null }],
    ['invalid_reply_to', '', { reply_to: null }],
    ['from_domain_not_verified', '', { from: 'hello@example.com' }],
    ['domain_not_allowed', '', {}, 'team'],
    ['not_found', 'template_id', { template_id: template.id }],
    ['not_found', 'attachments[0].attachment_id', small([file({ content: 'QQ==' })])],
    ['bad_request', 'name', { variables: { name: 'Ana' } }],
    ['quota_exceeded', '', {}],
  ]
  let body: Record<string, unknown> = anEmail({
    ...{ from: 'nobody', headers: { To: 'x' }, reply_to: 'no address', template_id: GONE, subject: 5 },
    attachments: [file({ filename: 'x.exe', content_type: 'nothing' }), file()],
  })
  let as = key
  for (const [code, words, cure, next] of faults) {
    const one = await service.call('POST', '/v1/emails', { key: as, body })
    t.equal(one.body.error?.code, code)
    t.ok(one.body.error?.message.includes(words), one.body.error?.message)
    const many = await service.call('POST', '/v1/emails/batch', { key: as, body: { emails: [body] } })
    const error = code === 'quota_exceeded' ? many.body.error : many.body.data[0].error
    t.equal(error?.code, code, 'in a batch')
    if (words.startsWith('attachments')) t.ok(error.message.startsWith(`emails[0].${words}`), error.message)
    body = { ...body, ...cure }
    if (next === 'team') as = team.key
  }
  t.strictSame(await stored(team), NOTHING)
})

t.test('a low limit applies to emails without attachments', async (t) => {
  const team = await makeTeam(service)
  service.deps.attachments.message_bytes = 1024 * 1024
  t.teardown(() => {
    service.deps.attachments.message_bytes = 25 * 1024 * 1024
  })
  const send = (fields: Record<string, unknown>) =>
    service.call('POST', '/v1/emails', { key: team.key, body: anEmail(fields) })
  const whole = 'a'.repeat(1024 * 1024)
  const half = 'a'.repeat(512 * 1024)
  const error = { code: 'payload_too_large', message: /^html must be smaller\. .* \d+\.\d MiB, .* 1 MiB\.$/ }
  t.match(await send({ html: whole }), { status: 413, body: { error } })
  t.match(await send({ html: half, text: half }), { status: 413, body: { error } })
  t.match(await send({ html: whole, from: 'nobody' }), { status: 413 }, 'before the other fields')
  t.equal((await send({ html: half })).status, 201)
  const body = { emails: [anEmail({ html: whole }), anEmail({})] }
  const { body: batch } = await service.call('POST', '/v1/emails/batch', { key: team.key, body })
  t.match(batch.data, [{ error: { code: 'payload_too_large', message: /^emails\[0\]\.html/ } }, { id: /./ }])
})

t.test('the email quota is checked before the storage quota', async (t) => {
  const team = await makeTeam(service, { storage_gb: 0.000001, email_limit: 1 })
  const send = (attachments: unknown[]) =>
    service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ attachments }) })
  const over = await send([file()])
  t.equal(`${over.status} ${over.body.error.code}`, '402 quota_exceeded')
  t.match(over.body.error.message, /1000 bytes.*3000/)
  t.equal((await send([file({ content: 'QQ==' })])).status, 201, 'what was refused cost no email')
  const none = await send([file()])
  t.notMatch(none.body.error.message, /bytes/)
  t.strictSame(await stored(team), { files: 1, bytes: 1, chunks: 1, used: 1 })
})

t.test('an interrupted upload leaves nothing stored', async (t) => {
  const team = await makeTeam(service)
  const { port } = new URL(service.base)
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST /v1/attachments?filename=a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${team.key}\r\nContent-Length: 1000000\r\n\r\n`,
  )
  socket.write(Buffer.alloc(600_000))
  await until('some of it is there', async () => (await stored(team)).chunks > 0)
  socket.destroy()
  await until('nothing is left', async () => (await stored(team)).files === 0)
  t.strictSame(await stored(team), NOTHING)
})

t.test('deletes files of a killed process, and keeps newer ones', async (t) => {
  const team = await makeTeam(service)
  for (const [id, minutes] of [
    [GONE, 40],
    ['01920000-0000-7000-8000-000000000001', 5],
  ] as const) {
    await service.database.query(sql.unsafe`
      insert into files (team_id, id, created_at, last_used_at)
      values (${team.id}, ${id}, service_time() - interval '3 hours',
        service_time() - make_interval(mins => ${minutes}))`)
    await service.database.query(sql.unsafe`
      insert into file_chunks (team_id, file_id, part, bytes) values (${team.id}, ${id}, 0, 'x')`)
  }
  await deleteAbandonedFiles(service.database, new Date(Date.now() - 30 * 60_000))
  t.strictSame(await stored(team), { files: 1, bytes: 0, chunks: 1, used: 0 })
})

t.test('attachments add few statements, whatever their number', async (t) => {
  const proxy = await startDatabaseProxy(t, service.url)
  const counted = await startService(t, { url: proxy.url, wake: () => {} })
  const { key } = await makeTeam(counted)
  const send = (emails: unknown[]) => counted.call('POST', '/v1/emails/batch', { key, body: { emails } })
  const files = (count: number, name = 'file') =>
    Array.from({ length: count }, (_, n) => file({ content: Buffer.from(`${name} ${n}`).toString('base64') }))
  const one = anEmail({ attachments: files(1) })
  const twenty = anEmail({ attachments: files(20) })
  await send([twenty])
  const without = await proxy.during(() => send([anEmail()]))
  const withOne = await proxy.during(() => send([one]))
  const withMany = await proxy.during(() => send(Array.from({ length: 50 }, () => twenty)))
  const withNew = await proxy.during(() => send([anEmail({ attachments: files(20, 'new') })]))
  // The statements of a batch of emails (emails-batch.test.ts).
  t.ok(without <= 9, `${without}`)
  t.ok(withOne <= without + 6, `${withOne}`)
  t.ok(withMany <= without + 6, `${withMany}`)
  t.ok(withNew <= without + 9, `${withNew}`)
})
