/**
 * Servers that fail in mid-dialogue: outcomes that are safe to retry, and unknown ones. A hanging send would
 * end at tap's own limit.
 */
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import type { EmailDelivery } from '../../../../workers/providers/provider.ts'
import type { SmtpTimeouts } from '../../../../workers/providers/smtp/adapter.ts'
import { makeCertificate } from '../../../support/certificate.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { portOf } from '../../../support/port.ts'
import { reset } from '../../../support/reset.ts'
import { only, provide as provideWith } from '../../../support/smtp-provider.ts'
import { type Fault, type Step, startSmtpScript } from '../../../support/smtp-script.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'

/** Generous limits for a busy machine, except for the final response that never comes. */
const LIMITS: SmtpTimeouts = { connect_ms: 10_000, greeting_ms: 10_000, total_ms: 30_000, answer_ms: 1_500 }
/** For servers that are silent earlier. */
const SILENT: SmtpTimeouts = { ...LIMITS, total_ms: 6_000 }
const UNREACHABLE: SmtpTimeouts = { ...LIMITS, connect_ms: 500 }

const provide = (t: Test, url: string, timeouts = LIMITS) => provideWith(t, { url, timeouts })

const EHLO = { alone: '250 scripted', pipelining: '250-scripted\r\n250 PIPELINING' }
const BEFORE_THE_DOT: Step[] = ['banner', 'ehlo', 'mail', 'rcpt', 'data']
const FAULTS: Fault[] = ['drop', 'reset', 'hang', 'drip', 'gibberish']

// they mostly wait
t.jobs = 5

for (const [mode, ehlo] of Object.entries(EHLO)) {
  const faultAt = (at: Step, fault: Fault) => (step: Step) =>
    step === at ? fault : step === 'ehlo' ? ehlo : undefined

  for (const fault of FAULTS) {
    t.test(
      `${fault} before MAIL is the sender’s, and before the final dot defers (${mode})`,
      { buffered: true },
      async (t) => {
        const tryAt = async (step: Step): Promise<void> => {
          const { url } = await startSmtpScript(t, faultAt(step, fault))
          const outcome = only(await provide(t, url, SILENT).send(outgoingEmail()))
          t.match(
            outcome,
            ['banner', 'ehlo'].includes(step)
              ? { kind: 'sender', detail: /./ }
              : { kind: 'deferred', detail: /./ },
            `${step}: ${JSON.stringify(outcome)}`,
          )
        }
        await Promise.all(BEFORE_THE_DOT.map(tryAt))
      },
    )

    t.test(`${fault} after it leaves the outcome unknown (${mode})`, { buffered: true }, async (t) => {
      const { url, steps } = await startSmtpScript(t, faultAt('dot', fault))
      const email = outgoingEmail({ text: 'x\n'.repeat(40_000), to: ['a@example.com', 'b@example.com'] })
      const { provider_message_id, outcomes } = await provide(t, url).send(email)
      t.equal(provider_message_id, null)
      for (const outcome of outcomes.values()) t.match(outcome, { kind: 'unknown' }, JSON.stringify(outcome))
      t.equal(steps.filter((step) => step === 'dot').length, 1, 'not sent a second time on our own')
    })
  }
}

t.test('a rejected recipient stays rejected after a lost response', async (t) => {
  let rcpt = 0
  const { url } = await startSmtpScript(t, (step) => {
    if (step === 'rcpt') return ++rcpt === 1 ? '550 5.1.1 No such user' : undefined
    return step === 'dot' ? 'drop' : undefined
  })
  const to = ['dead@example.com', 'ok@example.com']
  const { outcomes } = await provide(t, url).send(outgoingEmail({ to }))
  t.match(outcomes.get('dead@example.com'), { kind: 'refused', effect: 'hard' })
  t.match(outcomes.get('ok@example.com'), { kind: 'unknown' })
})

t.test('a complete reply counts even if the connection then breaks', async (t) => {
  const { url } = await startSmtpScript(t, (step) => (step === 'dot' ? '421 4.3.0 closing' : undefined))
  const outcome = only(await provide(t, url, { ...LIMITS, answer_ms: 20_000 }).send(outgoingEmail()))
  t.match(outcome, { kind: 'sender', trouble: 'slow' })
})

t.test('a message that breaks off in the middle is deferred', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.write('220 x\r\n')
    socket.on('data', (chunk) => {
      if (!/^DATA/m.test(chunk.toString())) return socket.write('250 OK\r\n')
      socket.pause()
      socket.write('354 go\r\n')
      setTimeout(() => reset(socket), 300)
    })
  })
  const port = await portOf(t, server)
  // more than the kernel's buffers
  const text = 'é'.repeat(6_000_000)
  const outcome = only(await provide(t, `smtp://127.0.0.1:${port}`).send(outgoingEmail({ text })))
  t.match(outcome, { kind: 'deferred' }, JSON.stringify(outcome))
})

const { pem: cert, key_pem: key } = makeCertificate(['127.0.0.1'])

/** Greets, and then sends empty lines: at once, under TLS from the start, or after STARTTLS. */
async function startBlankLines(t: Test, way: 'smtp' | 'smtps' | 'STARTTLS'): Promise<string> {
  const blank = Buffer.from('\r\n'.repeat(32_768))
  const pour = async (socket: Socket) => {
    for (let chunks = 0; chunks < 500 && !socket.destroyed; chunks++) {
      if (!socket.write(blank)) await new Promise((go) => socket.once('drain', go).once('close', go))
    }
    socket.destroy()
  }
  const greet = (socket: Socket) => {
    socket.on('error', () => undefined)
    socket.write('220 hi\r\n')
    if (way !== 'STARTTLS') return pour(socket)
    return socket.on('data', (line) => {
      if (line.toString().startsWith('EHLO')) return socket.write('250-hi\r\n250 STARTTLS\r\n')
      socket.removeAllListeners('data').write('220 go\r\n')
      const secured = new TLSSocket(socket, { isServer: true, cert, key })
      return secured.on('error', () => undefined).once('data', () => pour(secured))
    })
  }
  const server = way === 'smtps' ? createTlsServer({ cert, key }, greet) : createServer(greet)
  return `${way === 'smtps' ? 'smtps' : 'smtp'}://127.0.0.1:${await portOf(t, server)}?tls.rejectUnauthorized=false`
}

for (const way of ['smtp', 'smtps', 'STARTTLS'] as const) {
  t.test(`a server that sends too much is disconnected (${way})`, async (t) => {
    const outcome = only(await provide(t, await startBlankLines(t, way)).send(outgoingEmail()))
    t.match(outcome, {
      kind: 'sender',
      trouble: 'connection',
      detail: /the server sent more than 32 KiB at once/,
    })
  })
}

t.test('a reply with different codes is neither yes nor no', async (t) => {
  const { url } = await startSmtpScript(t, (step) =>
    step === 'dot' ? '250-taken\r\n550 not taken' : undefined,
  )
  t.match(only(await provide(t, url).send(outgoingEmail())), {
    kind: 'unknown',
    detail: "the server's response is contradictory: 250-taken 550 not taken",
  })
})

t.test('an unreachable server is a sender failure, not the message’s', async (t) => {
  const { url } = await startSmtpScript(t, () => undefined)
  const closed = url.replace(/\d+$/, '1')
  for (const unreachable of [closed, 'smtp://does-not-exist.invalid:25', 'smtp://192.0.2.1:25']) {
    const outcome = only(await provide(t, unreachable, UNREACHABLE).send(outgoingEmail()))
    t.match(
      outcome,
      { kind: 'sender', trouble: 'connection', detail: /./ },
      `${unreachable}: ${outcome?.detail}`,
    )
  }
})

t.test('a rejecting greeting is a sender failure', async (t) => {
  for (const [banner, trouble] of [
    ['554 5.3.2 no service here', 'setup'],
    ['450 later', 'connection'],
  ] as const) {
    const { url } = await startSmtpScript(t, (step) => (step === 'banner' ? banner : undefined))
    t.match(only(await provide(t, url).send(outgoingEmail())), { kind: 'sender', trouble }, banner)
  }
})

t.test('messages that wait too long for a connection are deferred', async (t) => {
  const { url } = await startSmtpScript(t, (step) => (step === 'mail' ? 'hang' : undefined))
  const provider = provideWith(t, { url, max_connections: 1, timeouts: SILENT })
  const sent = await Promise.all([1, 2, 3].map(() => provider.send(outgoingEmail())))
  t.ok(sent.every((delivery) => /^(deferred|sender)$/.test(only(delivery)?.kind ?? '')))
  t.match(only(sent[0] as EmailDelivery), { detail: 'not finished within 6000 ms (EABORT)' })
})

t.test('a recovered server is used again at once', async (t) => {
  const { url } = await startSmtpScript(t, (step, nth) =>
    step === 'rcpt' && nth === 1 ? 'reset' : undefined,
  )
  const provider = provideWith(t, { url })
  t.match(only(await provider.send(outgoingEmail())), { kind: 'deferred' })
  t.match(only(await provider.send(outgoingEmail())), { kind: 'accepted' })
})

t.test('the final response has a separate time limit', async (t) => {
  const sink = await startSmtpSink(t, {
    onMessage: async () => {
      await new Promise((resolve) => setTimeout(resolve, 4_500))
      return undefined
    },
  })
  const provider = provide(t, sink.url, { ...LIMITS, total_ms: 4_000, answer_ms: 20_000 })
  t.match(only(await provider.send(outgoingEmail())), { kind: 'accepted' })
  t.equal(sink.messages().length, 1)
})

t.test('a send cut off after its final dot is unknown', async (t) => {
  for (const [step, kind] of [
    ['dot', 'unknown'],
    ['rcpt', 'deferred'],
  ] as const) {
    const reached = Promise.withResolvers<void>()
    const { url } = await startSmtpScript(t, (at) => {
      if (at !== step) return undefined
      reached.resolve()
      return 'hang'
    })
    const cut = new AbortController()
    const provider = provideWith(t, { url, max_connections: 1 })
    const sending = provider.send(outgoingEmail(), cut.signal)
    await reached.promise
    cut.abort()
    t.match(only(await sending), { kind, detail: /the worker shut down/ }, step)
  }
})
