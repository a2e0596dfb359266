/** Each recipient's result by the server's responses: acceptance, rejections, requested reports. */
import type { SmtpScript } from '../../../sandbox/smtp.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { only, provide, start } from '../../../support/smtp-provider.ts'
import { startSmtpScript } from '../../../support/smtp-script.ts'
import t from '../../../support/tap.ts'

t.test('an accepted message is accepted for all, with our Message-ID', async (t) => {
  const { sink, provider } = await start(t)
  const email = outgoingEmail({ to: ['a@example.com', 'b@example.com', 'a@example.com'] })
  const { provider_message_id, outcomes } = await provider.send(email)
  t.equal(provider_message_id, email.message_id)
  t.same([...outcomes.keys()], ['a@example.com', 'b@example.com'])
  t.match([...outcomes.values()], [{ kind: 'accepted', detail: /^250 / }, { kind: 'accepted' }])
  t.match(sink.last(), { mail_from: 'bounce@demo.test', rcpt_to: ['a@example.com', 'b@example.com'] })
})

t.test('each recipient has the outcome of its own reply', async (t) => {
  for (const hidePIPELINING of [false, true]) {
    const replies: Record<string, string> = {
      'dead@example.com': '550 5.1.1 No such user',
      'busy@example.com': '450 4.2.1 Busy',
    }
    const { sink, provider } = await start(t, { onRcpt: (to) => replies[to] }, { server: { hidePIPELINING } })
    const to = ['dead@example.com', 'ok@example.com', 'busy@example.com']
    const { provider_message_id, outcomes } = await provider.send(outgoingEmail({ to }))
    t.ok(provider_message_id)
    const dead = outcomes.get('dead@example.com')
    t.strictSame(dead, { kind: 'refused', detail: '550 5.1.1 No such user', effect: 'hard' })
    t.match(outcomes.get('ok@example.com'), { kind: 'accepted' })
    t.strictSame(outcomes.get('busy@example.com'), { kind: 'deferred', detail: '450 4.2.1 Busy' })
    t.same(sink.last().rcpt_to, ['ok@example.com'])

    const none = await provider.send(outgoingEmail({ to: ['dead@example.com', 'busy@example.com'] }))
    t.equal(none.provider_message_id, null)
    t.match(none.outcomes.get('dead@example.com'), { kind: 'refused', effect: 'hard' })
    t.match(none.outcomes.get('busy@example.com'), { kind: 'deferred' })
  }
})

t.test('a relay’s rejection of access or login rejects no message', async (t) => {
  const policy = (blames: string) => ({ kind: 'policy', blames })
  const setup = { kind: 'sender', trouble: 'setup' }
  const cases: [reply: string, expected: object][] = [
    // Postfix: no login, no relay access, a sender that the login doesn't own.
    ['RCPT 554 5.7.1 <client.test[192.0.2.1]>: Client host rejected: Access denied', policy('recipient')],
    ['RCPT 554 5.7.1 <ana@example.org>: Relay access denied', policy('recipient')],
    ['RCPT 454 4.7.1 <ana@example.org>: Relay access denied', { ...policy('identity'), trouble: 'setup' }],
    ['MAIL 454 4.7.0 Temporary authentication failure', setup],
    ['RCPT 553 5.7.1 <b-x@bounces.test>: Sender address rejected: not owned by user u', policy('recipient')],
    ['MAIL 553 5.7.1 <b-x@bounces.test>: Sender address rejected: not owned by user u', policy('identity')],
    ['MAIL 550 5.1.8 <b-x@bounces.test>: Sender address rejected: Domain not found', policy('identity')],
    ['MAIL 550 Sender verify failed', policy('identity')],
    ['MAIL 552 5.3.4 Message size exceeds fixed limit', { kind: 'refused', effect: 'none' }],
    // Exim.
    ['RCPT 550 relay not permitted', policy('recipient')],
    // Microsoft.
    ['DATA 550 5.7.60 SMTP; Client does not have permissions to send as this sender', policy('identity')],
    // SES over SMTP.
    ['DATA 554 Message rejected: Email address is not verified. The following …', policy('identity')],
    ['DATA 554 Message rejected: Virus', { kind: 'refused', effect: 'none' }],
    ['DATA 554 5.7.1 This message looks like spam', { kind: 'refused', effect: 'none' }],
    ['CONN 554 5.7.1 You are blocked', setup],
    ['CONN 450 later', { kind: 'sender', trouble: 'connection' }],
    ['RCPT 530 5.7.0 Must issue a STARTTLS command first', setup],
  ]
  for (const [line, expected] of cases) {
    const reply = line.slice(5)
    const hook =
      { RCPT: 'onRcpt', MAIL: 'onMail', DATA: 'onMessage', CONN: 'onConnect' }[line.slice(0, 4)] ?? ''
    const { provider } = await start(t, { [hook]: () => reply })
    t.match(only(await provider.send(outgoingEmail())), { ...expected, detail: reply }, line)
  }
})

t.test('a rejected message rejects the remaining recipients without suppression', async (t) => {
  const onRcpt = (to: string) => (to === 'dead@example.com' ? '550 5.1.1 No such user' : undefined)
  const to = ['dead@example.com', 'ok@example.com']
  for (const [words, kind] of [
    ['554 5.6.0 Spam', 'refused'],
    ['550 Content rejected', 'refused'],
    ['451 4.3.0 Later', 'deferred'],
    ['452 4.3.1 Disk full', 'deferred'],
    ['503 5.5.1 Bad sequence', 'deferred'],
  ]) {
    const { provider } = await start(t, { onRcpt, onMessage: () => words })
    const { provider_message_id, outcomes } = await provider.send(outgoingEmail({ to }))
    t.equal(provider_message_id, null)
    const key = words?.toLowerCase()
    const rest = kind === 'refused' ? { effect: 'none' } : words?.startsWith('45') ? { key } : {}
    t.strictSame(outcomes.get('ok@example.com'), { kind, detail: words, ...rest })
    t.match(outcomes.get('dead@example.com'), { kind: 'refused', effect: 'hard' }, 'its own reply stands')
  }
})

t.test('a rejected DATA command rejects the message', async (t) => {
  for (const ehlo of ['250 scripted', '250-scripted\r\n250 PIPELINING']) {
    const faults = { ehlo, data: '554 5.6.0 No' }
    const { url } = await startSmtpScript(t, (step) => faults[step as 'ehlo'])
    t.match(only(await provide(t, { url }).send(outgoingEmail())), { kind: 'refused', effect: 'none' })
  }
})

t.test('throttling slows the sender at every stage', async (t) => {
  const throttled = '454 Throttling failure: Maximum sending rate exceeded.'
  const full = '421 4.7.0 Too many concurrent SMTP connections'
  const scripts: [SmtpScript, string][] = [
    [{ onMessage: () => throttled }, throttled],
    [{ onRcpt: () => throttled }, throttled],
    [{ onMail: () => throttled }, throttled],
    [{ onConnect: () => full }, full],
    [{ onMail: () => full }, full],
    [{ onRcpt: () => full }, full],
    [{ onMessage: () => full }, full],
  ]
  for (const [script, detail] of scripts) {
    const { provider } = await start(t, script)
    const outcome = only(await provider.send(outgoingEmail()))
    t.strictSame(outcome, { kind: 'sender', detail, trouble: 'slow' }, `${Object.keys(script)} ${detail}`)
  }
})

t.test('a string that isn’t exactly one address is rejected unsent', async (t) => {
  const hostile = [
    'v@e.f, evil@x.test',
    'grp:a@b.test,c@d.test;',
    'x@y.test>\r\nRCPT TO:<w@w.test',
    'x@y.test\r\nRCPT TO:<w@w.test>',
    '<x@y.test>',
    'Name <x@y.test>',
    '"a@b.test, c"@d.test',
    'a@b.test@c.test',
    'a b@c.test',
    'a@[127.0.0.1]',
    'a@b.test\0',
    'é@b.test',
    'a',
    '',
  ]
  const { sink, provider } = await start(t)
  const { outcomes } = await provider.send(outgoingEmail({ to: [...hostile, 'ok@example.com'] }))
  for (const recipient of hostile)
    t.match(outcomes.get(recipient), { kind: 'refused', effect: 'none' }, JSON.stringify(recipient))
  t.match(outcomes.get('ok@example.com'), { kind: 'accepted' })
  t.same(sink.last().rcpt_to, ['ok@example.com'])
  const nobody = await provider.send(outgoingEmail({ to: ['v@e.f, evil@x.test'] }))
  t.equal(nobody.provider_message_id, null)
  t.match(only(await provider.send(outgoingEmail({ return_path: 'a@b.test, c@d.test' }))), {
    kind: 'deferred',
  })
  t.equal(sink.messages().length, 1)
})

t.test('the envelope has domains in punycode, outcomes the given address', async (t) => {
  const { url, lines } = await startSmtpScript(t, () => undefined)
  const to = ["O'Ne!l+x@EXAMPLE.com", 'ana@bücher.test', 'ana@xn--bcher-kva.test']
  const email = outgoingEmail({ to, return_path: 'b+Sig=1@bounces.demo.test' })
  const { outcomes } = await provide(t, { url, hostname: 'mail.demo.test' }).send(email)
  t.same([...outcomes.keys()], to)
  t.ok([...outcomes.values()].every(({ kind }) => kind === 'accepted'))
  t.same(lines, [
    'EHLO mail.demo.test',
    'MAIL FROM:<b+Sig=1@bounces.demo.test>',
    "RCPT TO:<O'Ne!l+x@example.com>",
    'RCPT TO:<ana@xn--bcher-kva.test>',
    'DATA',
  ])
})

t.test('stores responses short, printable and on one line', async (t) => {
  const words = `550-5.1.1 one\0two\u0007\r\n550 5.1.1 \u001b[31m${'long '.repeat(300)}`
  const { url } = await startSmtpScript(t, (step) => (step === 'rcpt' ? words : undefined))
  const outcome = only(await provide(t, { url }).send(outgoingEmail()))
  t.match(outcome, {
    kind: 'refused',
    effect: 'hard',
    detail: /^550-5\.1\.1 one two 550 5\.1\.1 {2}\[31mlong long/,
  })
  t.ok((outcome?.detail.length ?? 0) <= 500)
  t.notMatch(outcome?.detail, /\p{Cc}/u)
})

t.test('reports of deliveries, failures and delays are requested if offered', async (t) => {
  const offering = await startSmtpScript(t, (step) =>
    step === 'ehlo' ? '250-scripted\r\n250 DSN' : undefined,
  )
  const provider = provide(t, { url: offering.url })
  await provider.send(outgoingEmail({ to: ['ana+news@example.com'] }))
  await provider.send(outgoingEmail({ to: ['ana@example.com', 'bob@example.com'] }))
  t.match(
    offering.lines.filter((line) => /^(?:MAIL|RCPT)/.test(line)),
    [
      /^MAIL FROM:<[^>]*> RET=HDRS$/,
      'RCPT TO:<ana+news@example.com> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;ana+2Bnews@example.com',
      /^MAIL FROM:<[^>]*> RET=HDRS$/,
      'RCPT TO:<ana@example.com> NOTIFY=SUCCESS,FAILURE,DELAY',
      'RCPT TO:<bob@example.com> NOTIFY=SUCCESS,FAILURE,DELAY',
    ],
  )
})
