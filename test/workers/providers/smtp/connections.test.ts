/** Connections to a relay: logins, TLS, number, reuse, and closing. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSmtpProvider } from '../../../../workers/providers/smtp/adapter.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { only, provide, start } from '../../../support/smtp-provider.ts'
import { startSmtpScript } from '../../../support/smtp-script.ts'
import { type SinkOptions, startSmtpSink } from '../../../support/smtp-sink.ts'
import t from '../../../support/tap.ts'

t.test('a check signs in, sends nothing and hides the password', async (t) => {
  const { sink, provider } = await start(t)
  t.equal(await provider.check(), null)
  t.strictSame(sink.messages(), [])
  const password = 'pa:s/w@rd'
  const faults = { ehlo: '250-scripted\r\n250 AUTH PLAIN', auth: `535 5.7.8 ${password} is wrong` }
  const { url } = await startSmtpScript(t, (step) => faults[step as 'ehlo'])
  const with_login = url.replace('//', `//user:${encodeURIComponent(password)}@`)
  t.match(await provide(t, { url: with_login }).check(), /535 5\.7\.8 \*\*\* is wrong/)
  t.match(await provide(t, { url: 'smtp://127.0.0.1:9' }).check(), /ECONNREFUSED/)
  for (const [fault, bounds] of [
    ['hang', { greeting_ms: 200 }],
    ['drip', { total_ms: 200 }],
  ] as const) {
    const dumb = await startSmtpScript(t, (step) => (step === 'ehlo' ? fault : undefined))
    t.type(await provide(t, { url: dumb.url, timeouts: bounds }).check(), 'string', `it ends: ${fault}`)
  }
})

t.test('a failing login defers everything and shows no password', async (t) => {
  const password = 'pa:s/w@rd'
  const basic = Buffer.from(`\0user\0${password}`).toString('base64')
  const faults = { ehlo: '250-scripted\r\n250 AUTH PLAIN', auth: `535 5.7.8 ${password} ${basic} is wrong` }
  const { url, lines } = await startSmtpScript(t, (step) => faults[step as 'ehlo'])
  const with_login = url.replace('//', `//user:${encodeURIComponent(password)}@`)
  const outcome = only(await provide(t, { url: with_login }).send(outgoingEmail()))
  t.strictSame(outcome, { kind: 'sender', detail: '535 5.7.8 *** *** is wrong', trouble: 'setup' })
  t.ok(lines.includes(`AUTH PLAIN ${basic}`), 'the login is that of the URL')
  for (const words of ['530 5.7.0 Authentication required', '535 No', '538 Encrypt first']) {
    const { provider } = await start(t, { onMail: () => words })
    t.match(only(await provider.send(outgoingEmail())), { kind: 'sender', trouble: 'setup' })
  }
})

t.test('sends the URL’s login, over TLS if offered', async (t) => {
  const server = {
    disabledCommands: [],
    authOptional: false,
    onAuth: (
      auth: { username?: string; password?: string },
      _: unknown,
      done: (e: Error | null, r?: object) => void,
    ) =>
      auth.username === 'u@x' && auth.password === 'p%'
        ? done(null, { user: 'u' })
        : done(new Error('535 no')),
  } as NonNullable<SinkOptions['server']>
  for (const secure of [false, true]) {
    const sink = await startSmtpSink(t, {}, { server: { ...server, secure } })
    const with_login = sink.url.replace('//', '//u%40x:p%25@')
    const provider = provide(t, { url: `${with_login}?tls.rejectUnauthorized=false&requireTLS=1` })
    t.match(only(await provider.send(outgoingEmail())), { kind: 'accepted' }, secure ? 'smtps' : 'STARTTLS')
    const strict = provide(t, { url: with_login })
    t.match(only(await strict.send(outgoingEmail())), {
      kind: 'sender',
      trouble: 'connection',
      detail:
        /certificate.*\. Set NODE_EXTRA_CA_CERTS to a file .* add tls\.rejectUnauthorized=false .* to SMTP_URL$/,
    })
  }
})

t.test('nothing is sent if required TLS isn’t offered', async (t) => {
  const { sink } = await start(t)
  const provider = provide(t, { url: `${sink.url}?requireTLS=1` })
  t.match(only(await provider.send(outgoingEmail())), { kind: 'sender' })
  t.equal(sink.messages().length, 0)
})

t.test('many sends share few connections, and each message arrives once', async (t) => {
  const { url, connections, steps } = await startSmtpScript(t, () => undefined)
  const provider = provide(t, { url, max_connections: 3 })
  const sent = await Promise.all(Array.from({ length: 60 }, () => provider.send(outgoingEmail())))
  t.ok(sent.every((delivery) => only(delivery)?.kind === 'accepted'))
  t.ok(connections() <= 3, `${connections()} connections`)
  t.equal(steps.filter((step) => step === 'dot').length, 60)
})

t.test('a connection closed while idle doesn’t affect the next message', async (t) => {
  const { url, connections, dropAll } = await startSmtpScript(t, () => undefined)
  const provider = provide(t, { url, max_connections: 1 })
  for (let round = 0; round < 20; round += 1) {
    t.match(only(await provider.send(outgoingEmail())), { kind: 'accepted' }, `round ${round}`)
    dropAll()
    // from before the client can have seen it to well after
    await sleep(round)
  }
  t.ok(connections() >= 20)
  const goodbye = await startSmtpScript(t, (step, nth) =>
    step === 'mail' && nth > 1 && nth < 4 ? '421 4.4.2 idle for too long' : undefined,
  )
  const again = provide(t, { url: goodbye.url })
  t.match(only(await again.send(outgoingEmail())), { kind: 'accepted' })
})

t.test('a rejected message leaves its connection usable', async (t) => {
  let reply: string | undefined = '550 5.1.1 No'
  const { provider, sink } = await start(t, { onRcpt: () => reply })
  t.match(only(await provider.send(outgoingEmail())), { kind: 'refused' })
  reply = undefined
  t.match(only(await provider.send(outgoingEmail())), { kind: 'accepted' })
  t.equal(sink.messages().length, 1)
})

t.test('close finishes sends in flight and defers later ones', async (t) => {
  const { sink, provider } = await start(t, {
    onMessage: async () => {
      await sleep(300)
      return undefined
    },
  })
  const sending = Array.from({ length: 12 }, () => provider.send(outgoingEmail()))
  await sleep(50)
  await provider.close()
  t.equal(sink.messages().length, 12, 'queued ones too')
  t.ok((await Promise.all(sending)).every((delivery) => only(delivery)?.kind === 'accepted'))
  t.match(only(await provider.send(outgoingEmail())), { kind: 'deferred', detail: /closed/ })
})

t.test('the sink records each Message-ID on file before it responds', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-sink-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const id_file = join(folder, 'ids')
  const { provider } = await start(t, {}, { id_file })
  const email = outgoingEmail()
  await provider.send(email)
  t.equal(readFileSync(id_file, 'utf8'), `${email.message_id}\n`)
})

t.test('an invalid SMTP URL is reported without its password', (t) => {
  for (const url of ['', 'http://u:secret@h', 'smtp://', 'smtp:secret', 'smtp://u:secret@h:99999']) {
    const attempt = () => createSmtpProvider({ url, max_connections: 5 })
    t.throws(attempt, { message: 'SMTP_URL must be smtp://… or smtps://…' }, url)
  }
  t.end()
})
