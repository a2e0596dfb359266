/**
 * Measures how fast workers deliver. Emails go from the queue through one and then two worker processes to an
 * SMTP server with a delay of 5 ms per message. Prints the rates from one run, without assertions. Run:
 * DATABASE_URL=postgres://… node test/bench/deliver.ts (an empty database, which is migrated).
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { createVersions } from '../../db/content/templates/versions.ts'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { createProducer } from '../../db/queue/producer.ts'
import { startSmtpSandbox } from '../sandbox/smtp.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { makeTeam, type Service } from '../support/service.ts'

const MAILS = 4_000
const BATCH = 100

const url = process.env.DATABASE_URL
if (!url) throw new Error('set DATABASE_URL to an empty database')
await migrate(url)
const database = await openDatabase(url)
const queue = createProducer()
const deps = { secrets: createSecrets(SECRET_KEY), clock: () => new Date(), log: pino({ level: 'silent' }) }
const limits = { email_limit: 100_000_000, rate: 1_000_000 }
const team = await makeTeam({ database, deps } as unknown as Pick<Service, 'database' | 'deps'>, limits)
let arrived = 0
const sink = await startSmtpSandbox({
  port: 0,
  keep_messages: 1,
  script: {
    onMessage: async () => {
      await sleep(5)
      arrived += 1
      return undefined
    },
  },
})

const item = {
  path: '',
  from: { name: 'Acme', address: 'hello@example.com', domain: 'example.com' },
  to: ['someone@example.org'],
  subject: 'Hello',
  html: '<p>Hello</p>',
  ...{
    template_id: null,
    variables: null,
    text: 'Hello',
    headers: null,
    reply_to: '',
    tags: [],
    idempotency_key: null,
  },
}

async function enqueue(changes: object): Promise<void> {
  for (let batch = 0; batch < MAILS / BATCH; batch++) {
    const items = Array.from({ length: BATCH }, () => ({ ...item, ...changes }))
    await database.transaction(
      async (tx) =>
        await acceptEmails(
          { tx, queue, versions: createVersions() },
          { team_id: team.id, domain: null },
          items,
        ),
    )
  }
}

async function startWorkers(count: number): Promise<ChildProcess[]> {
  const env = { ...process.env, SECRET_KEY, LOG_LEVEL: 'warn', SMTP_URL: `smtp://127.0.0.1:${sink.port}` }
  const workers = Array.from({ length: count }, () =>
    fork(join(import.meta.dirname, '../../workers/main.ts'), { env }),
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  return workers
}

/** Measures emails per second, from the first worker's startup message until the last email has arrived. */
async function measure(count: number, changes = {}): Promise<number> {
  await enqueue(changes)
  arrived = 0
  const workers = await startWorkers(count)
  const started = performance.now()
  while (arrived < MAILS) await sleep(20)
  const seconds = (performance.now() - started) / 1_000
  for (const worker of workers) worker.kill('SIGTERM')
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
  return Math.round(MAILS / seconds)
}

const one = await measure(1)
const two = await measure(2)
const made = await measure(1, { text: null })
process.stdout.write(`one worker ${one} mails/s, two ${two} mails/s: ${(two / one).toFixed(2)} ×\n`)
process.stdout.write(`one worker that makes the text part of each: ${made} mails/s\n`)
await sink.close()
await database.end()
