/** Delivery during failures: real workers and SMTP servers. DECISIONS: Sender failures, Lost responses. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { pino } from 'pino'
import { sql } from 'slonik'
import { listSenders } from '../../../db/delivery/senders/show.ts'
import { applyReportedEmails, type ReportedEmail } from '../../../db/messages/emails/apply-events.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { showEmail } from '../../../db/messages/emails/show.ts'
import type { SmtpScript } from '../../sandbox/smtp.ts'
import { EMPTY } from '../../support/empty.ts'
import { hold } from '../../support/held.ts'
import { jobStates, lockWaits, sentCount, setJobsDue } from '../../support/rows.ts'
import { makeTeam, sendEmails, startService, type TestTeam } from '../../support/service.ts'
import { startSmtpScript } from '../../support/smtp-script.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const { database } = service

async function begin(): Promise<TestTeam> {
  await database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email'`)
  return makeTeam(service)
}

/**
 * Waits until a worker's record has waited for a lock until the timeout and given way. It is identified by
 * the statement that locks email rows, because scheduled jobs may wait as well.
 */
async function recordGivesWay(): Promise<void> {
  const waiting = () => lockWaits(service, 'from email_states where .* for no key update\\)')
  await until('its record has met the lock', async () => (await waiting()) > 0)
  await until('its record has given way', async () => (await waiting()) === 0)
}

const kinds = async (team: TestTeam, id: string) =>
  (await eventsOfEmail(database, team.id, id)).map(({ kind }) => kind)
const deliveredTo = (team: TestTeam, id: string, recipient: string): ReportedEmail => ({
  ref: { team_id: team.id, id },
  ...{ kind: 'delivered', effect: 'delivered', recipient, detail: '', provider_message_id: null },
  ...{ event_key: `delivered:${recipient}`, occurred_at: new Date() },
})
const senderOf = async (url: string) =>
  (await listSenders(database)).find(({ key }) => key === `smtp:${new URL(url).host}`)

t.test('a relay rejecting our set-up bounces nothing, then recovers', async (t) => {
  const team = await begin()
  let refusing = true
  const sink = await startSmtpSink(t, {
    onRcpt: () => (refusing ? '554 5.7.1 Relay access denied' : undefined),
  })
  await sendEmails(service, team, Array(300).fill({}))
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  await until('the relay is paused', async () => (await senderOf(sink.url))?.state === 'paused')
  t.match(await senderOf(sink.url), { reason: /Relay access denied/, events: [{ kind: 'paused' }] })
  refusing = false
  await until('all are sent', async () => (await sentCount(service, team.id)) === 300)
  t.equal(sink.messages().length, 300)
  t.match(await senderOf(sink.url), { state: 'sending', events: [{ kind: 'recovered' }, { kind: 'paused' }] })
  await worker.stop()
})

t.test('workers with fast and slow clocks end each other’s pauses', async (t) => {
  const team = await begin()
  let refusing = true
  const sink = await startSmtpSink(t, {
    onRcpt: () => (refusing ? '554 5.7.1 Relay access denied' : undefined),
  })
  const start = (hours: number) => {
    const clock = () => new Date(Date.now() + hours * 3_600_000)
    return startWorker(t, service, { smtp_url: sink.url, clock })
  }
  for (const hours of [5, -5]) {
    refusing = true
    const before = await sentCount(service, team.id)
    await sendEmails(service, team, Array(20).fill({}))
    const one = await start(hours)
    await until('the relay is paused', async () => (await senderOf(sink.url))?.state === 'paused')
    await one.stop()
    refusing = false
    const other = await start(-hours)
    await until('all are sent', async () => (await sentCount(service, team.id)) === before + 20)
    t.match(await senderOf(sink.url), {
      state: 'sending',
      events: [{ kind: 'recovered' }, { kind: 'paused' }],
    })
    await other.stop()
  }
})

t.test('a policy rejection of one recipient delays no one', async (t) => {
  const team = await begin()
  const sink = await startSmtpSink(t, {
    onRcpt: (to) => (to.startsWith('blocked') ? '554 5.7.1 Not from you' : undefined),
  })
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  const contact = { email: 'blocked@example.org' }
  await service.call('POST', '/v1/contacts', { key: team.key, body: contact })
  const [blocked = ''] = await sendEmails(service, team, Array(1).fill({ to: ['blocked@example.org'] }))
  await until('it is held', async () => (await kinds(team, blocked))[0] === 'held')
  await sendEmails(service, team, Array(20).fill({}))
  await until('the others are sent', async () => (await sentCount(service, team.id)) === 20)
  await until('it bounced', async () => (await emailById(database, team.id, blocked))?.status === 'bounced')
  const { body } = await service.call('GET', '/v1/contacts/blocked@example.org', { key: team.key })
  t.equal(body.status, 'subscribed')
  await worker.stop()
})

t.test('a temporary relay denial delays only its recipients', async (t) => {
  const team = await begin()
  const sink = await startSmtpSink(t, {
    onRcpt: (to) => (to.startsWith('far') ? '454 4.7.1 Relay access denied' : undefined),
  })
  const far = await sendEmails(service, team, Array(4).fill({ to: ['far@example.org'] }))
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  const isPutOff = async (id: string) => (await kinds(team, id)).includes('deferred')
  for (let sent = 20; !(await Promise.all(far.map(isPutOff))).every(Boolean); sent += 20) {
    await sendEmails(service, team, Array(20).fill({}))
    await until('the others are sent', async () => (await sentCount(service, team.id)) === sent)
  }
  t.strictSame((await emailById(database, team.id, far[0] ?? ''))?.status, 'queued')
  await sendEmails(service, team, Array(20).fill({}))
  await until('nothing is in the way', async () => (await senderOf(sink.url))?.state !== 'paused')
  await worker.stop()
})

/** Starts a relay that can be stopped and restarted at the same address. */
async function relay(t: Test, script: SmtpScript = {}) {
  const sink = await startSmtpSink(t, script)
  const sockets = new Set<Socket>()
  let server: Server | null = null
  let port = 0
  const open = async (): Promise<void> => {
    const made = createServer((socket) => {
      const other = new URL(sink.url)
      const onward = connect(Number(other.port), other.hostname)
      for (const each of [socket, onward]) sockets.add(each.on('error', () => {}))
      socket.pipe(onward).pipe(socket)
    })
    await new Promise<void>((resolve) => made.listen(port, '127.0.0.1', resolve))
    const address = made.address()
    port = typeof address === 'object' && address ? address.port : 0
    server = made
  }
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server?.close(resolve))
  }
  await open()
  t.teardown(close)
  return { sink, open, close, url: `smtp://127.0.0.1:${port}` }
}

t.test('a relay outage uses no attempt and loses no message', async (t) => {
  const team = await begin()
  const { sink, open, close, url } = await relay(t)
  await close()
  const ids = await sendEmails(service, team, Array(200).fill({}))
  const worker = await startWorker(t, service, { smtp_url: url })
  await until('it was probed in vain', async () => ((await senderOf(url))?.troubles ?? 0) >= 3)
  for (const id of ids) t.strictSame(await kinds(team, id), [])
  t.equal((await senderOf(url))?.events.length, 1, 'its own timeline has it once')
  await open()
  await until('all are sent', async () => (await sentCount(service, team.id)) === 200)
  t.equal(sink.messages().length, 200)
  t.match(await senderOf(url), { state: 'sending', events: [{ kind: 'recovered' }, { kind: 'paused' }] })
  await worker.stop()
})

t.test('lost responses cause three attempts, ten minutes apart', async (t) => {
  const team = await begin()
  const script = await startSmtpScript(t, (step) => (step === 'dot' ? 'drop' : undefined))
  const [id = ''] = await sendEmails(service, team, Array(1).fill({}))
  const worker = await startWorker(t, service, { smtp_url: script.url })
  for (const tries of [1, 2]) {
    await until('it waits', async () => (await kinds(team, id)).length === tries)
    await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
    const wait = await setJobsDue(service, id)
    t.ok(wait > 590 && wait <= 600, `${wait} s`)
  }
  await until('it is given up', async () => (await jobStates(service, id))[0] === 'failed')
  t.strictSame(await kinds(team, id), ['unknown', 'unknown', 'unknown', 'gave_up'])
  const deps = { ...service.deps, tx: database, now: new Date(), publicUrl: undefined }
  t.match((await showEmail(deps, team.id, id)).waiting, {
    state: 'failed',
    attempts: 3,
    last_response: /it may have arrived/,
    paused_senders: EMPTY,
  })
  t.equal(script.steps.filter((step) => step === 'dot').length, 3)
  await worker.stop()
})

t.test("rejected and deferred messages don't delay a recovered relay", async (t) => {
  const team = await begin()
  const { open, close, url } = await relay(t, {
    onRcpt: (to) => ({ dead: '550 5.1.1 No such user', busy: '450 4.2.1 Busy' })[to.slice(0, 4)],
  })
  await close()
  const [dead, busy] = [
    await sendEmails(service, team, Array(2).fill({ to: ['dead@example.org'] })),
    await sendEmails(service, team, Array(2).fill({ to: ['busy@example.org'] })),
  ]
  const worker = await startWorker(t, service, { smtp_url: url })
  await until('it was probed in vain', async () => ((await senderOf(url))?.troubles ?? 0) >= 2)
  await open()
  const unanswered = async (ids: string[]) =>
    (await Promise.all(ids.map((id) => kinds(team, id)))).some(({ length }) => length === 0)
  await until('each has its answer', async () => !(await unanswered([...dead, ...busy])), 60)
  await sendEmails(service, team, Array(20).fill({}))
  await until('all others are sent', async () => (await sentCount(service, team.id)) === 20)
  t.match(await senderOf(url), { state: 'sending', events: [{ kind: 'recovered' }, { kind: 'paused' }] })
  await worker.stop()
})

t.test('a report after a lost response ends no deferrals', async (t) => {
  const team = await begin()
  let recipients = 0
  const script = await startSmtpScript(t, (step, connection) => {
    if (step === 'rcpt' && ++recipients === 2) return '450 4.2.1 Busy'
    return step === 'dot' && connection === 1 ? 'drop' : undefined
  })
  const [taken, later] = ['taken@example.org', 'later@example.org']
  const [id = ''] = await sendEmails(service, team, Array(1).fill({ to: [taken, later] }))
  const worker = await startWorker(t, service, { smtp_url: script.url })
  await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
  t.strictSame((await kinds(team, id)).sort(), ['deferred', 'unknown'])
  await database.transaction((tx) => applyReportedEmails(tx, [deliveredTo(team, id, taken)], new Date()))
  t.match(await emailById(database, team.id, id), { status: 'delivered', pending_recipients: [later] })
  await setJobsDue(service, id)
  await until(
    'nobody waits',
    async () => (await emailById(database, team.id, id))?.pending_recipients === null,
  )
  const rcpts = script.lines.flatMap((line) => /^RCPT TO:<(.*?)>/.exec(line)?.[1] ?? [])
  t.strictSame(rcpts, [taken, later, later])
  await worker.stop()
})

t.test('each send is settled as it ends, despite a slow one', async (t) => {
  const team = await begin()
  const slow = Promise.withResolvers<undefined>()
  const sink = await startSmtpSink(t, {
    onMessage: async ({ rcpt_to }) => (rcpt_to[0]?.startsWith('slow') ? await slow.promise : undefined),
  })
  const [stuck = ''] = await sendEmails(service, team, Array(1).fill({ to: ['slow@example.org'] }))
  await sendEmails(service, team, Array(9).fill({}))
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  await until('nine are sent', async () => (await sentCount(service, team.id)) === 9)
  const deps = { ...service.deps, tx: database, now: new Date(), publicUrl: undefined }
  t.match((await showEmail(deps, team.id, stuck)).waiting, { state: 'in_flight', attempts: 0 })
  slow.resolve(undefined)
  await until('it is sent too', async () => (await sentCount(service, team.id)) === 10)
  await worker.stop()
})

t.test('a long lock on the rows causes no second copy', async (t) => {
  const team = await begin()
  const reached = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const sink = await startSmtpSink(t, {
    onMessage: async () => {
      reached.resolve()
      await locked.promise
      return undefined
    },
  })
  const [id = ''] = await sendEmails(service, team, Array(1).fill({}))
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  await reached.promise
  const lock = database.transaction(async (tx) => {
    await tx.query(sql.unsafe`lock table emails in access exclusive mode`)
    locked.resolve()
    await release.promise
  })
  await until('it is handed over', () => sink.messages().length === 1)
  await recordGivesWay()
  release.resolve()
  await lock
  await until('it is recorded', async () => (await emailById(database, team.id, id))?.status === 'sent')
  t.equal(sink.messages().length, 1)
  await worker.stop()
})

t.test('while records fail, fewer than twice the slots are sent', async (t) => {
  const team = await begin()
  const sink = await startSmtpSink(t)
  await sendEmails(service, team, Array(100).fill({}))
  const commit = await hold(t, database, (tx) =>
    tx.query(sql.unsafe`select id from email_states where team_id = ${team.id} for update`),
  )
  const worker = await startWorker(t, service, { smtp_url: sink.url, concurrency: 5 })
  await recordGivesWay()
  const handedOver = sink.messages().length
  t.ok(handedOver > 0 && handedOver < 10, `${handedOver} of 100`)
  await commit()
  await until('all are sent', async () => (await sentCount(service, team.id)) === 100)
  t.equal(sink.messages().length, 100)
  await worker.stop()
})

t.test('a result that can’t be stored delays no other', async (t) => {
  const team = await begin()
  const together = Promise.withResolvers<undefined>()
  let waiting = 0
  const sink = await startSmtpSink(t, {
    onMessage: () => {
      waiting += 1
      if (waiting === 6) together.resolve(undefined)
      return together.promise
    },
  })
  const [broken = '', ...others] = await sendEmails(service, team, Array(6).fill({}))
  await database.query(sql.unsafe`
    create function reject_row() returns trigger language plpgsql as $$ begin
      raise exception 'this row cannot change'; end $$`)
  await database.query(sql.unsafe`
    create trigger reject_row before update on email_states for each row when (old.id = ${sql.literalValue(broken)})
    execute function reject_row()`)
  t.teardown(() => database.query(sql.unsafe`drop function reject_row cascade`))
  const lines: { msg: string; messages?: number; id?: string }[] = []
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
  const worker = await startWorker(t, service, { smtp_url: sink.url, log })
  await until('five are sent', async () => (await sentCount(service, team.id)) === others.length)
  await until('one is a dead letter', async () => (await jobStates(service, broken)).includes('failed'))
  await worker.stop()
  t.equal(sink.messages().length, 6)
  const logged = lines.filter(({ msg }) => msg === 'sent').map(({ messages = 0 }) => messages)
  const sum = logged.reduce((sum, each) => sum + each, 0)
  t.equal(sum, others.length)
  t.strictSame(lines.filter(({ msg }) => msg === 'failed to record a result').length, 1)
})
