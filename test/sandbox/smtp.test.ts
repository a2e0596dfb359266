/** The sandbox as a developer meets it: magic recipients, bounds, the inbox, and the process that npm start runs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { Outcome } from '../../workers/providers/provider.ts'
import { createSmtpProvider } from '../../workers/providers/smtp/adapter.ts'
import { outgoingEmail } from '../support/outgoing-email.ts'
import t, { type Test } from '../support/tap.ts'
import { startInbox } from './inbox.ts'
import { keepIn } from './keep.ts'
import { type SandboxOptions, startSmtpSandbox } from './smtp.ts'

async function start(t: Test, options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSmtpSandbox({ port: 0, ...options })
  const provider = createSmtpProvider({ url: `smtp://127.0.0.1:${sandbox.port}`, max_connections: 5 })
  t.teardown(async () => {
    await provider.close()
    await sandbox.close()
  })
  const sendTo = async (...to: string[]): Promise<Outcome[]> => {
    const { outcomes } = await provider.send(outgoingEmail({ to }))
    return [...outcomes.values()]
  }
  return { sandbox, provider, sendTo }
}

async function startWithInbox(t: Test) {
  const started = await start(t)
  const inbox = await startInbox({ port: 0, sandbox: started.sandbox })
  t.teardown(() => inbox.close())
  return { ...started, base: `http://127.0.0.1:${inbox.port}` }
}

t.test('email to anyone is accepted and stored with its envelope', async (t) => {
  const { sandbox, sendTo } = await start(t)
  const to = ['anyone@anywhere.test', 'delivered@demo.test', 'bounced@demo.test', 'complained@demo.test']
  for (const outcome of await sendTo(...to)) t.match(outcome, { kind: 'accepted' })
  t.match(sandbox.messages(), [{ mail_from: 'bounce@demo.test', rcpt_to: to }])
  t.equal((await sandbox.messages()[0]?.parsed())?.subject, 'Hello')
})

t.test('rejects refused@ permanently, at any domain and in any case', async (t) => {
  const { sandbox, sendTo } = await start(t)
  for (const recipient of ['refused@demo.test', 'REFUSED@else.test', 'refused+1@demo.test']) {
    t.match(await sendTo(recipient), [
      { kind: 'refused', detail: '550 5.1.1 No such mailbox', effect: 'hard' },
    ])
  }
  t.match(await sendTo('refusedly@demo.test'), [{ kind: 'accepted' }])
  t.equal(sandbox.messages().length, 1)
})

t.test('deferred@ is deferred twice, then accepted, then starts over', async (t) => {
  const { sendTo } = await start(t)
  const kinds: (string | undefined)[] = []
  for (let round = 0; round < 6; round += 1) kinds.push((await sendTo('deferred@demo.test'))[0]?.kind)
  t.same(kinds, ['deferred', 'deferred', 'accepted', 'deferred', 'deferred', 'accepted'])
  t.match(await sendTo('deferred@demo.test'), [{ detail: '451 4.3.0 Try again later (1 of 2)' }])
  t.match(await sendTo('deferred@other.test'), [{ detail: '451 4.3.0 Try again later (1 of 2)' }], 'alone')
})

t.test('calls onAccepted for each recipient of accepted messages', async (t) => {
  const heard: string[] = []
  const { sendTo } = await start(t, { onAccepted: (_message, recipient) => heard.push(recipient) })
  await sendTo('bounced@demo.test', 'refused@demo.test', 'delivered@demo.test')
  await turn()
  t.same(heard, ['bounced@demo.test', 'delivered@demo.test'])
})

t.test('only the newest messages are kept', async (t) => {
  const few = await start(t, { keep_messages: 2 })
  for (const name of ['a', 'b', 'c']) await few.sendTo(`${name}@demo.test`)
  const recipients = few.sandbox
    .messages()
    .map(({ rcpt_to }) => rcpt_to[0])
    .join()
  t.equal(recipients, 'b@demo.test,c@demo.test')
  const small = await start(t, { keep_bytes: 1200 })
  for (let sent = 0; sent < 6; sent += 1) await small.sendTo('a@demo.test')
  const kept = small.sandbox.messages()
  t.ok(kept.length > 0 && kept.length < 6 && kept.reduce((sum, { size }) => sum + size, 0) <= 1200)
})

t.test('the inbox lists emails, newest first, and shows each completely', async (t) => {
  const { base, provider, sandbox } = await startWithInbox(t)
  await provider.send(outgoingEmail({ subject: 'first' }))
  const email = outgoingEmail({ subject: 'Grüße', text: 'Hallo', headers: { 'X-MyHeader': 'v' } })
  await provider.send(email)
  const list = (await (await fetch(`${base}/messages`)).json()) as { id: string; size: number }[]
  t.match(list, [
    {
      subject: 'Grüße',
      from: 'Demo <hello@demo.test>',
      to: ['ana@example.com'],
      mail_from: 'bounce@demo.test',
      rcpt_to: ['ana@example.com'],
      message_id: `<${email.message_id}>`,
      received_at: /^\d{4}-\d\d-\d\dT.*Z$/,
      size: sandbox.messages()[1]?.size ?? 0,
    },
    { subject: 'first' },
  ])
  const one = (await (await fetch(`${base}/messages/${list[0]?.id}`)).json()) as { headers: unknown[] }
  t.match(one, { subject: 'Grüße', text: /^Hallo/, html: /<p>Hello<\/p>/ })
  t.ok(one.headers.some((header) => JSON.stringify(header) === '{"name":"X-MyHeader","value":"v"}'))
  const raw = await fetch(`${base}/messages/${list[0]?.id}/raw`)
  t.equal(raw.headers.get('content-type'), 'message/rfc822')
  t.ok(Buffer.from(await raw.arrayBuffer()).equals(sandbox.messages()[1]?.raw ?? Buffer.alloc(0)))

  t.equal((await fetch(`${base}/messages/nothing`)).status, 404)
  t.equal((await fetch(`${base}/messages`, { method: 'DELETE' })).status, 204)
  t.same(await (await fetch(`${base}/messages`)).json(), [])
  t.equal((await fetch(`${base}/messages`, { method: 'PUT' })).status, 405)
})

t.test('nothing in an email can affect the inbox page', async (t) => {
  const { base, provider, sandbox } = await startWithInbox(t)
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\'</iframe>'
  await provider.send(
    outgoingEmail({
      subject: hostile,
      html: hostile,
      text: hostile,
      from: `"${hostile.replaceAll('"', '\\"')}" <x@demo.test>`,
      headers: { 'X-H': hostile },
    }),
  )
  const id = sandbox.messages()[0]?.id
  for (const view of ['html', 'text', 'headers', 'source']) {
    const page = await fetch(`${base}/?id=${id}&view=${view}&q=${encodeURIComponent('<script>')}`)
    const body = await page.text()
    t.match(page.headers.get('content-security-policy'), /^default-src 'none'/)
    t.notMatch(body, /<script>|<img|<\/iframe>'/)
    t.equal(body.match(/<iframe/g)?.length ?? 0, view === 'html' ? 1 : 0)
    t.ok(body.split('&lt;script&gt;').length >= 4, 'shown as text')
  }
  const frame = await fetch(`${base}/messages/${id}/html`)
  t.match(frame.headers.get('content-security-policy'), /^sandbox; default-src 'none'/)
  t.notMatch(frame.headers.get('content-security-policy'), /https?:/, 'loads nothing from elsewhere')
  t.equal((await fetch(`${base}/?id=unknown`)).status, 200)
})

t.test('the inbox searches sender, recipients, subject and text', async (t) => {
  const { base, provider } = await startWithInbox(t)
  await provider.send(outgoingEmail({ subject: 'Your invoice', to: ['ana@example.com'] }))
  await provider.send(outgoingEmail({ subject: 'Welcome', to: ['ben@example.com'] }))
  const listed = async (q: string): Promise<string[]> => {
    const page = await (await fetch(`${base}/list?q=${encodeURIComponent(q)}`)).text()
    return ['Your invoice', 'Welcome'].filter((subject) => page.includes(subject))
  }
  t.same(await listed(''), ['Your invoice', 'Welcome'])
  t.same(await listed('INVOICE ana@'), ['Your invoice'])
  t.same(await listed('ben@example.com'), ['Welcome'])
  t.same(await listed('invoice ben'), [])
})

t.test('received messages survive a restart until they are deleted', async (t) => {
  const directory = t.testdir()
  const kept = async (): Promise<string[]> => {
    const { sandbox, provider } = await start(t, { keep: await keepIn(directory) })
    const before = await Promise.all(
      sandbox.messages().map(async (one) => (await one.parsed()).subject ?? ''),
    )
    await provider.send(outgoingEmail({ subject: `Mail ${before.length + 1}` }))
    if (before.length === 2) sandbox.clear()
    await sandbox.close()
    return before
  }
  t.same(await kept(), [])
  t.same(await kept(), ['Mail 1'])
  t.same(await kept(), ['Mail 1', 'Mail 2'])
  t.same(await kept(), [])
})

t.test('a mail that cannot be read is still listed', async (t) => {
  const { base, sandbox } = await startWithInbox(t)
  const nested = Array.from(
    { length: 300 },
    (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}`,
  )
  const socket = createConnection(sandbox.port, '127.0.0.1')
  socket.once('data', () => socket.write('EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.test>\r\nDATA\r\n'))
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      if (/^354/m.test(chunk.toString())) socket.write(`${nested.join('\r\n')}\r\n.\r\nQUIT\r\n`)
    })
    socket.on('close', () => resolve())
  })
  t.match(await (await fetch(`${base}/messages`)).json(), [{ subject: '(unreadable)', mail_from: /^$/ }])
  t.equal((await fetch(base)).status, 200)
})

const run = (t: Test, env: Record<string, string>): ChildProcess => {
  const file = join(import.meta.dirname, 'main.ts')
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('the sandbox accepts email, and exits 0 on SIGTERM', async (t) => {
  const child = run(t, { SANDBOX_SMTP_PORT: '0', SANDBOX_HTTP_PORT: '0', SANDBOX_WHATSAPP_PORT: '0' })
  const [line] = (await once(child.stdout ?? child, 'data')) as [Buffer]
  const [, smtp = '', http = ''] =
    /^sandbox ready: (smtp:\S+) (http:\S+) http:\S+\n$/.exec(line.toString()) ?? []
  const provider = createSmtpProvider({ url: smtp, max_connections: 5 })
  t.match([...(await provider.send(outgoingEmail())).outcomes.values()], [{ kind: 'accepted' }])
  t.match(await (await fetch(`${http}/messages`)).json(), [{ subject: 'Hello' }])
  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [0, null])
  await provider.close()
})

t.test('an occupied or invalid port prints one line and exits', async (t) => {
  const { sandbox } = await start(t)
  for (const [port, words] of [
    [String(sandbox.port), /^sandbox: .*EADDRINUSE.*\n$/],
    ['http', /^sandbox: SANDBOX_SMTP_PORT must be a port number\n$/],
  ] as const) {
    const child = run(t, { SANDBOX_SMTP_PORT: port, SANDBOX_HTTP_PORT: '0' })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
    t.same(await once(child, 'close'), [1, null])
    t.match(said, words)
  }
})
