/** A worker's EHLO name, its TLS requirements, and the reports it requests from a relay. */
import { SMTP } from '../../../../workers/providers/smtp/declared.ts'
import { ehloName } from '../../../../workers/providers/smtp/ehlo-name.ts'
import { requiresTls, smtpUrlFault } from '../../../../workers/providers/smtp/url.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { only, provide, start } from '../../../support/smtp-provider.ts'
import { startSmtpScript } from '../../../support/smtp-script.ts'
import t from '../../../support/tap.ts'

t.test('EHLO sends the first usable name', (t) => {
  const all = {
    SMTP_EHLO_NAME: 'out.example.com',
    PUBLIC_URL: 'https://messages.example.com:8443',
    RETURN_PATH_DOMAIN: 'Bounces.bücher.example',
  }
  t.equal(ehloName(all, 'box.example.net'), 'out.example.com')
  for (const name of ['192.0.2.1', '[192.0.2.1]', '[2001:db8::1]', 'localhost', 'worker-1'])
    t.equal(ehloName({ ...all, SMTP_EHLO_NAME: name }, 'x'), 'messages.example.com', name)
  for (const PUBLIC_URL of [
    'http://localhost:3000',
    'http://192.0.2.1',
    'http://[2001:db8::1]:3000',
    undefined,
  ])
    t.equal(
      ehloName({ ...all, SMTP_EHLO_NAME: undefined, PUBLIC_URL }, 'x'),
      'bounces.xn--bcher-kva.example',
      `${PUBLIC_URL}`,
    )
  t.equal(ehloName({}, 'box.example.net'), 'box.example.net')
  t.equal(ehloName({}, '3f2a91'), undefined)
  t.end()
})

t.test('the name in the URL has precedence', async (t) => {
  const { url, lines } = await startSmtpScript(t, () => undefined)
  await provide(t, { url, hostname: 'a.example.com' }).send(outgoingEmail())
  await provide(t, { url: `${url}?name=b.example.com`, hostname: 'a.example.com' }).send(outgoingEmail())
  const greetings = lines.filter((line) => line.startsWith('EHLO'))
  t.strictSame(greetings, ['EHLO a.example.com', 'EHLO b.example.com'])
})

t.test('a rejected EHLO pauses the sender and names the setting', async (t) => {
  for (const reply of ['421 4.7.0 Try again later', '550 5.7.1 Access denied']) {
    const { url } = await startSmtpScript(t, (step) =>
      step === 'ehlo' || (step as string) === 'helo' ? reply : undefined,
    )
    const provider = provide(t, { url })
    const outcome = only(await provider.send(outgoingEmail()))
    t.match(outcome, { kind: 'sender', trouble: 'setup' }, JSON.stringify(outcome))
    for (const words of [outcome?.detail ?? '', await provider.check()]) {
      t.match(words, 'SMTP_EHLO_NAME')
      t.match(words, reply)
    }
  }
})

t.test('a login is only sent over TLS', async (t) => {
  const { url, lines } = await startSmtpScript(t, (step) => {
    if (step === 'ehlo') return '250-scripted\r\n250 AUTH PLAIN'
    return (step as string) === 'star' ? '502 5.5.1 unknown command' : undefined
  })
  const elsewhere = url.replace('//127.0.0.1', '//user:secret@0.0.0.0')
  const outcome = only(await provide(t, { url: elsewhere }).send(outgoingEmail()))
  t.match(outcome, { kind: 'sender', trouble: 'setup', detail: /requireTLS.*502 5\.5\.1/ })
  t.notOk(lines.some((line) => line.startsWith('AUTH')))
  for (const open of [`${elsewhere}?requireTLS=false`, url.replace('//', '//user:secret@')])
    t.match(only(await provide(t, { url: open }).send(outgoingEmail())), { kind: 'accepted' }, open)
})

t.test('TLS is required of a login, except on loopback', (t) => {
  const login = 'smtp://user:secret@'
  for (const host of [
    'relay.example.com',
    '10.0.0.1:25',
    '192.0.2.1',
    '[fd00::1]',
    '[::ffff:10.0.0.1]',
    'relay',
  ])
    t.ok(requiresTls(`${login}${host}`), host)
  for (const host of [
    '127.0.0.1',
    '127.1.2.3:25',
    '[::1]:25',
    'localhost',
    'LOCALHOST.',
    '[::ffff:127.0.0.1]',
  ])
    t.notOk(requiresTls(`${login}${host}`), host)
  for (const url of ['smtp://relay.example.com', `${login}relay.example.com?requireTLS=false`])
    t.notOk(requiresTls(url), url)
  t.end()
})

t.test('a login at a private address requires deciding about TLS', (t) => {
  const private_hosts = [
    ...[
      '10.1.2.3',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '100.64.0.1',
      '100.127.0.1',
      '169.254.1.1',
    ],
    ...['[fc00::1]', '[fdff::1]', '[fe80::1]', '[::ffff:192.168.1.1]', 'postfix', 'postfix.'],
  ]
  for (const host of private_hosts) {
    const url = `smtp://user:secret@${host}:587`
    t.match(smtpUrlFault(url), 'requireTLS', host)
    for (const decided of [
      `${url}?requireTLS=true`,
      `${url}?requireTLS=false`,
      url.replace('smtp:', 'smtps:'),
    ])
      t.equal(smtpUrlFault(decided), null, decided)
    t.equal(smtpUrlFault(`smtp://${host}`), null, 'without a login')
  }
  const others = [
    '172.32.0.1',
    '172.15.0.1',
    '100.128.0.1',
    '192.0.2.1',
    '[2001:db8::1]',
    'relay.example.com',
  ]
  for (const host of [...others, '127.0.0.1', '[::1]', 'localhost'])
    t.equal(smtpUrlFault(`smtp://user:secret@${host}`), null, host)
  t.end()
})

t.test('delivery reports are requested if they are useful', async (t) => {
  const { url, lines } = await startSmtpScript(t, (step) =>
    step === 'ehlo' ? '250-scripted\r\n250 DSN' : undefined,
  )
  const notify = () => / NOTIFY=(\S+)/.exec(lines.findLast((line) => line.startsWith('RCPT')) ?? '')?.[1]
  const provider = provide(t, { url })
  t.notMatch(only(await provider.send(outgoingEmail())), { delivered: true })
  t.equal(notify(), 'SUCCESS,FAILURE,DELAY')
  await provider.send(outgoingEmail({ is_broadcast: true }))
  t.equal(notify(), 'FAILURE,DELAY')
  const settings = {
    SMTP_URL: url,
    SMTP_DELIVERED: 'relay' as const,
    WORKER_CONCURRENCY: 1,
    RETURN_PATH_DOMAIN: 'b.test',
  }
  const final = await SMTP.open(settings)
  t.teardown(() => final.close())
  t.match(only(await final.send(outgoingEmail())), { kind: 'accepted', delivered: true })
  t.equal(notify(), 'FAILURE,DELAY')
  const { provider: other } = await start(t, { onMessage: () => '451 4.3.0 Later' })
  t.match(only(await other.send(outgoingEmail())), { kind: 'deferred' })
})
