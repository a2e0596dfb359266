/** Large emails in large numbers: their cost for a worker, their time limit, and their effect on others. */
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import type { Database } from '../../../db/postgres/pool.ts'
import { createEncodedFiles } from '../../../workers/channels/encoded-files.ts'
import { createSmtpProvider } from '../../../workers/providers/smtp/adapter.ts'
import { startDiscardingRelay } from '../../support/discarding-relay.ts'
import { hold } from '../../support/held.ts'
import { portOf } from '../../support/port.ts'
import { anEmail, type Service, sendEmail, type TestTeam, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startProcess, startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const MIB = 1024 * 1024

const upload = async ({ call }: Service, { key }: TestTeam, raw: Uint8Array, name = 'file.bin') => {
  const { status, body } = await call('POST', `/v1/attachments?filename=${name}`, { key, raw })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return String(body.id)
}

/** Wraps a database to count reads of files. */
function counted(database: Database): { database: Database; reads: () => number } {
  let reads = 0
  const any: Database['any'] = (query) => {
    if (query.sql.includes('file_chunks')) reads += 1
    return database.any(query)
  }
  return { database: { ...database, any }, reads: () => reads }
}

t.test("a thousand recipients' file is stored and read once", async (t) => {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t)
  const bytes = randomBytes(200_000)
  const attachments = [{ attachment_id: await upload(service, team, bytes) }]
  const people = (n: number) => Array.from({ length: 10 }, (_, each) => `${n}-${each}@example.org`)
  const emails = Array.from({ length: 100 }, (_, n) => anEmail({ to: people(n), attachments }))
  const { body } = await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  t.ok(body.data.every(({ id }: { id?: string }) => id))
  const row = object({ files: number().defined(), chunks: number().defined() })
  const stored = await service.database.one(sql.type(row)`
    select (select count(*) from files) as files, (select sum(length(bytes)) from file_chunks) as chunks`)
  t.strictSame(stored, { files: 1, chunks: bytes.length })
  const { database, reads } = counted(service.database)
  await startWorker(t, service, { smtp_url: sink.url, files: createEncodedFiles(database, 128 * MIB) })
  await until('all are sent', () => sink.messages().length === 100)
  t.equal(reads(), 1)
  const reached = new Set(sink.recipients().flat())
  t.equal(reached.size, 1_000)
  const mail = await sink.last().parsed()
  t.ok(Buffer.from(mail.attachments[0]?.content as ArrayBuffer).equals(bytes))
})

t.test('sends email without attachments while file tables are locked', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t)
  const { database, reads } = counted(service.database)
  const asked = { ...createEncodedFiles(database, MIB), hold: () => Promise.reject(new Error('held')) }
  await startWorker(t, service, { smtp_url: sink.url, files: asked })
  const commit = await hold(t, service.database, (tx) =>
    tx.query(sql.unsafe`lock table files, file_chunks, email_files, uploads in access exclusive mode`),
  )
  const ids = await Promise.all(Array.from({ length: 20 }, () => sendEmail(service, team, {})))
  const emails = async () => Promise.all(ids.map((id) => emailById(service.database, team.id, id)))
  await until('all are sent', async () => (await emails()).every((email) => email?.status === 'sent'))
  await commit()
  t.equal(sink.messages().length, 20)
  t.equal(reads(), 0)
})

/** Starts a proxy to a port with a limit of bytes per second. */
async function startSlowWay(t: Test, port: number, bytes_per_second: number): Promise<number> {
  const server = createServer((client) => {
    const behind = connect(port, '127.0.0.1')
    for (const socket of [client, behind]) socket.on('error', () => {})
    behind.pipe(client)
    client.on('close', () => behind.destroy())
    client.on('data', async (chunk) => {
      behind.write(chunk)
      client.pause()
      await sleep((chunk.length / bytes_per_second) * 1_000)
      client.resume()
    })
  })
  return portOf(t, server)
}

t.test('an email of 25 MB arrives once', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t)
  // The bytes in socket buffers, some 10 MB, count as sent for the sender.
  const port = await startSlowWay(t, sink.port, 3 * MIB)
  const email = createSmtpProvider({
    url: `smtp://127.0.0.1:${port}`,
    max_connections: 5,
    timeouts: { total_ms: 3_000 },
  })
  t.teardown(() => email.close())
  await startWorker(t, service, { email })
  const bytes = randomBytes(17.8 * MIB)
  const id = await sendEmail(service, team, {
    attachments: [{ attachment_id: await upload(service, team, bytes) }],
  })
  const status = async () => (await emailById(service.database, team.id, id))?.status
  await until('it is sent', async () => (await status()) === 'sent')
  t.equal(sink.messages().length, 1)
  const mail = await sink.last().parsed()
  t.ok(Buffer.from(mail.attachments[0]?.content as ArrayBuffer).equals(bytes))
})

/** Returns a process's peak memory in MiB, by the kernel's count. */
async function peakOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
}

/** Returns a content that encodes to 20 MB, different for each number. */
function largeContent(n: number): Buffer {
  const seed = createHash('sha512').update(String(n)).digest()
  return Buffer.alloc(14.5 * MIB, seed)
}

const skip = process.platform === 'linux' ? false : 'there is no /proc'

t.test('50 emails of 20 MB keep a worker within 512 MiB', { skip }, async (t) => {
  const { service, team } = await worldOf(await renewed(), { storage_gb: 10 })
  const relay = await startDiscardingRelay(t, { answering: () => sleep(200) })
  // Neighbours differ, so none is encoded for the next.
  const ids: string[] = []
  for (let n = 0; n < 10; n++) ids.push(await upload(service, team, largeContent(n), `${n}.bin`))
  const emails = Array.from({ length: 50 }, (_, n) =>
    anEmail({ subject: 'large', attachments: [{ attachment_id: ids[n % ids.length] }] }),
  )
  const { body } = await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  t.ok(body.data.every(({ id }: { id?: string }) => id))
  const worker = await startProcess(t, 'workers/main.ts', {
    DATABASE_URL: service.url,
    SMTP_URL: relay.url,
    WORKER_QUEUES: 'deliver-email',
  })
  await until('the first is through', () => relay.taken.length > 0)
  for (let n = 0; n < 20; n++) await sendEmail(service, team, { subject: 'small' })
  const count = (subject: string) => relay.taken.filter((each) => each.subject === subject).length
  await until('the small ones are through', () => count('small') === 20)
  const waiting = 50 - count('large')
  await until('the large ones are through', () => count('large') === 50, 180)
  const peak = await peakOf(worker.child.pid)
  t.ok(waiting > 0, `${waiting} large ones still waited`)
  t.ok(peak <= 512, `${Math.round(peak)} MiB`)
  t.equal(relay.taken.length, 70, 'each once')
  t.ok(relay.taken.every(({ subject, bytes }) => subject === 'small' || bytes > 20_000_000))
})
