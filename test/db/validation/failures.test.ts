/** The classification of failures, and their effect on the contact. */
import * as table from '../../../db/validation/failure-table.ts'
import { classifyFailure, type FailureReport, failureCode } from '../../../db/validation/failures.ts'
import t from '../../support/tap.ts'

type Case = [about: string, contact: string, said: FailureReport | string]

const check = (test: typeof t, cases: readonly Case[]) => {
  for (const [about, contact, said] of cases) {
    const report = typeof said === 'string' ? { reply: said } : said
    test.strictSame(classifyFailure(report), { about, contact }, JSON.stringify(said))
  }
}

t.test('a code or text about the address is evidence', async (t) => {
  const codes = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'].map(
    (status): Case => ['address', 'hard', { reply: '', status }],
  )
  check(t, [
    ...codes,
    ['address', 'hard', '550 User unknown'],
    ['address', 'hard', '501 Bad address'],
    ['address', 'hard', '550 No such user here'],
    ['address', 'hard', '554 delivery error: dd This user doesn’t have a yahoo.example account'],
    ['address', 'hard', '550 5.2.1 The account that you tried to reach is disabled'],
    ['address', 'hard', '550 5.2.1 The account that you tried to reach is inactive'],
    ['address', 'hard', '550 5.4.1 Recipient address rejected: Access denied [mx.example]'],
    ['address', 'hard', '550 5.4.1 All recipient addresses rejected : Access denied. AS(201806281)'],
    ['address', 'hard', '550 5.4.1 [ana@example.org]: Recipient address rejected: Access denied'],
    ['address', 'hard', '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).'],
    ['address', 'hard', '550 Invalid recipient <ana@example.org> (#5.1.1)'],
    ['address', 'hard', '550 ana@example.org has moved to bo@example.org'],
  ])
})

t.test("a domain that doesn't exist is evidence with any code", async (t) => {
  check(t, [
    ['address', 'hard', { reply: 'Host or domain name not found', status: '5.4.4' }],
    ['address', 'hard', { reply: '550 5.4.310 DNS domain example.org does not exist', status: '5.4.310' }],
    ['address', 'hard', { reply: 'Domain example.org does not accept mail (nullMX)', status: '5.1.10' }],
    ['address', 'hard', { reply: 'DNS lookup: NXDOMAIN', status: '4.4.4' }],
    ['address', 'hard', '550 5.7.1 NXDOMAIN'],
    ['address', 'hard', '551 5.7.1 Domain not found'],
    ['address', 'hard', { reply: 'Host or domain name not found', status: '5.2.2' }],
    ['address', 'hard', '550 5.3.4 Recipient domain has null MX'],
    ['policy', 'none', '554 5.7.1 Helo command rejected: domain not found'],
    ['sender', 'none', '550 5.7.1 Sender address rejected: Domain not found'],
    ['sender', 'none', '550 5.1.8 Domain does not exist'],
    ['sender', 'none', '553 5.7.1 sorry, your envelope sender domain must exist'],
    ['sender', 'none', '550 5.7.1 MAIL FROM domain does not exist'],
    ['sender', 'none', '550 EHLO domain does not exist'],
    ['sender', 'none', '550 5.7.1 Your domain does not exist or has no MX'],
    ['sender', 'none', '550 The sending domain does not exist'],
    ['sender', 'none', '550 5.1.0 From domain does not exist'],
    ['sender', 'none', '550 Envelope-From domain does not exist'],
    ['policy', 'none', '554 5.7.1 No PTR for 192.0.2.1: NXDOMAIN'],
    ['policy', 'none', '550 This host does not accept mail from yours'],
    [
      'expired',
      'soft',
      { reply: 'Host or domain name not found: Host not found, try again', status: '4.4.3' },
    ],
    ['sender', 'none', { reply: '550 5.7.27 Sender address has null MX', status: '5.7.27' }],
  ])
})

t.test('text about the sender or its IP hides no dead address', async (t) => {
  check(t, [
    [
      'address',
      'hard',
      '550 5.1.1 Unknown user (from sender address <a@example.com>): <b@example.org> does not exist',
    ],
    [
      'address',
      'hard',
      '550 5.1.1 <b@example.org>: User unknown in virtual mailbox table (your IP: 192.0.2.1)',
    ],
    ['address', 'hard', '550 Unrouteable address (your IP 192.0.2.7)'],
    ['address', 'hard', { reply: '', status: '5.1.1', text: 'Your IP address: 192.0.2.1. User unknown' }],
    ['address', 'hard', '550 5.1.2 Domain not found (mail sent from domain example.com)'],
    ['address', 'hard', '550 5.1.10 example.org does not accept mail from anyone (null MX)'],
    [
      'address',
      'hard',
      'host mx.example.org[192.0.2.1] refused to talk to me: 521 5.3.2 host does not accept mail',
    ],
    ['address', 'hard', 'Remote host network.example.org said: 550 5.1.1 user unknown'],
    ['address', 'hard', 'host spam.example.org[0:0:0:0:0:ffff:192.0.2.1] said: 550 user unknown'],
    ['address', 'hard', '550 5.1.1 No such user (rejected by recipients table)'],
    ['mailbox_full', 'soft', '550 5.2.2 mailbox full, daily sending of the user is over'],
  ])
})

t.test("a bare code isn't evidence", async (t) => {
  for (const reply of ['550', '550 no', '554 5.0.0 no', '550 5.1.0 no', '550 5.5.0 no', '550 5.2.1 no'])
    t.strictSame(classifyFailure({ reply }), { about: 'unknown', contact: 'soft' }, reply)
  for (const status of ['', '5.0.0', '5.2.0', '5.5.1'])
    t.strictSame(classifyFailure({ reply: '', status }), { about: 'unknown', contact: 'soft' }, status)
  check(t, [
    ['unknown', 'soft', '550 Requested action not taken: mailbox unavailable'],
    ['address', 'hard', '550 5.1.1 Requested action not taken: mailbox unavailable'],
    // Postfix's response to DATA, also after a temporary response to RCPT.
    ['unknown', 'soft', 'host mx.example[192.0.2.1] said: 554 5.5.1 Error: no valid recipients'],
  ])
})

t.test('other subjects leave the contact untouched or count as soft', async (t) => {
  check(t, [
    ['mailbox_full', 'soft', '552 5.2.2 x'],
    ['mailbox_full', 'soft', { reply: '', status: '4.2.2' }],
    ['mailbox_full', 'soft', '550 The user is over quota'],
    ['mailbox_full', 'soft', '552 Mailbox is out of storage space'],
    ['policy', 'none', '550 5.7.1 x'],
    ['policy', 'none', '554 Service unavailable; Client host [192.0.2.1] blocked using a list'],
    ['policy', 'none', '554 Email rejected due to security policies'],
    ['policy', 'none', '550 5.2.0 Message rejected due to DMARC'],
    ['policy', 'none', '553 http://www.spamhaus.org/query/bl?ip=192.0.2.2'],
    ['rate', 'none', '550 5.2.1 The user is receiving mail at a rate that prevents more'],
    ['rate', 'none', '554 5.2.121 x'],
    ['rate', 'none', '554 5.2.122 x'],
    ['policy', 'none', '554 Blocked - see https://lookup.example/?ip=192.0.2.1'],
    ['policy', 'none', '550 Failed for one or more recipients (ana@example.org:blocked)'],
    ['policy', 'none', '501 Rejected by policy [7.7] 38102'],
    ['policy', 'none', '553 This route requires encryption (TLS)'],
    ['policy', 'none', '550 Your IP address does not exist in DNS'],
    ['policy', 'none', 'host mx.example[192.0.2.1] refused to talk to me: 554 Ask your postmaster'],
    ['policy', 'none', '550 5.7.1 RESOLVER.RST.AuthRequired; authentication required'],
    ['policy', 'none', '550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required'],
    ['sender', 'none', '530 5.7.0 Authentication required'],
    ['rate', 'none', '550 Sender frequency limited'],
    ['rate', 'none', '550 Too many messages'],
    ['message', 'none', { reply: '', status: '5.2.3' }],
    ['message', 'none', { reply: '', status: '5.3.4' }],
    ['message', 'none', { reply: '', status: '5.6.11' }],
    ['message', 'none', '552 Message size exceeds the limit'],
    ['message', 'none', '552 The size is 20 MB'],
    ['sender', 'none', '550 5.1.0 <a@example.com> sender rejected'],
    ['sender', 'none', { reply: '', status: '5.1.7' }],
    ['sender', 'none', { reply: '', status: '5.1.8' }],
    ['sender', 'none', '554 Message rejected: Email address is not verified.'],
    ['sender', 'none', 'Domain example.com has exceeded the max emails per hour (500/500)'],
    ['sender', 'none', '550 relay denied'],
    ['sender', 'none', '550 5.4.5 Daily user sending quota exceeded'],
    ['sender', 'none', '550 5.4.5 Daily SMTP relay limit exceeded'],
    ['sender', 'none', '554 5.2.2 Submission quota exceeded'],
    ['sender', 'none', '550 5.1.0 Sender denied'],
    ['sender', 'none', '550 Sender address <a@example.com> does not exist'],
    ['route', 'soft', { reply: '', status: '5.3.0' }],
    ['route', 'soft', { reply: '', status: '5.4.4' }],
    ['route', 'soft', '554 5.4.6 Too many hops'],
    ['expired', 'soft', { reply: '', status: '4.4.7' }],
    ['expired', 'soft', { reply: 'Message expired, connection refused', status: '5.4.316' }],
    ['expired', 'soft', 'retry timeout exceeded'],
  ])
})

t.test('the server’s own reply outranks the status of a report', async (t) => {
  check(t, [
    ['message', 'none', { status: '5.2.3', reply: '550 5.2.3 RecipSizeLimit; message too large' }],
    [
      'policy',
      'none',
      { status: '5.0.0', reply: 'host mx.example[192.0.2.1] said: 554 5.6.0 scored as spam' },
    ],
    [
      'policy',
      'none',
      { status: '5.0.0', reply: "5.1.0 - Unknown address error 550-'5.7.1 <b@a.example>... no'" },
    ],
    [
      'expired',
      'soft',
      { status: '5.0.0', reply: '451 4.5.1 exceeded the rate limit: retry timeout exceeded' },
    ],
    ['expired', 'soft', { status: '5.0.0', reply: 'host mx.example [192.0.2.1]: 451 Later' }],
    ['policy', 'none', { status: '5.1.1', reply: '550 5.7.1 IP address blacklisted by recipient' }],
    ['mailbox_full', 'soft', { status: '5.1.1', reply: '552 5.2.2 Over quota' }],
    ['address', 'hard', { status: '5.0.0', reply: '550 5.1.1 User unknown' }],
    ['address', 'hard', { status: '5.0.0', reply: '550 Unknown user' }],
  ])
  t.equal(failureCode('550 5.1.1 a: host b said: 550 5.7.1 c', '5.1.1'), '5.7.1')
  t.equal(failureCode('550-5.1.1 a 550 5.1.1 b 5.0.0', ''), '5.1.1')
  t.equal(failureCode('551 x (#id-5.9.0) from 5.1.1.1', ''), '5.0.0')
  t.equal(failureCode('x', 'Status (smtp) 5.1.10 gone'), '5.1.10')
})

t.test('code and text about different subjects are never evidence', async (t) => {
  check(t, [
    ['policy', 'none', '550 5.7.1 No such user'],
    ['policy', 'none', { status: '5.1.1', reply: 'blocked using a list' }],
    ['mailbox_full', 'soft', '552 5.1.1 Recipient overquota'],
    ['route', 'soft', { status: '5.1.1', reply: 'connection timed out' }],
    ['address', 'hard', { status: '5.4.1', reply: 'user unknown' }],
  ])
})

t.test("a report's text counts if the reply is inconclusive", async (t) => {
  const text = 'Domain example.com has exceeded the max emails per hour. Message discarded.'
  t.match(classifyFailure({ reply: '', status: '5.0.0', text }), { about: 'sender', contact: 'none' })
  t.match(classifyFailure({ reply: '550 User unknown', text: 'rejected as spam' }), { contact: 'hard' })
})

t.test('ignores names of mailboxes and hosts', async (t) => {
  for (const name of ['spam@example.org', '<policy.quota@spf.example>'])
    t.match(classifyFailure({ reply: `550 5.1.1 ${name} User unknown` }), { about: 'address' }, name)
  t.match(classifyFailure({ reply: 'host dmarc.example[192.0.2.1] said: 550 User unknown' }), {
    about: 'address',
  })
})

t.test('classifies hostile text quickly', async (t) => {
  for (const reply of [
    'a'.repeat(1e6),
    'a@'.repeat(5e5),
    'http://'.repeat(2e5),
    '5.1.'.repeat(2e5),
    '[1 '.repeat(2e5),
  ]) {
    const began = performance.now()
    classifyFailure({ reply, text: reply })
    t.ok(performance.now() - began < 10_000, reply.slice(0, 10))
  }
})

/** Sources that are written in lower case. */
const LOWER_CASE = /^(?:sisimai|qmail|many)\b/

t.test('each line of the table names its source', (t) => {
  const { FAILURE_CODES, ...rest } = table
  for (const [, code, source] of FAILURE_CODES) t.match(source, /[A-Z]/, `${code}`)
  for (const [source, ...phrases] of Object.values(rest).flatMap((list) =>
    Array.isArray(list) ? list : [],
  )) {
    t.ok(/[A-Z]/.test(source) || LOWER_CASE.test(source), source)
    const lowerCase = phrases.map((phrase: string) => phrase.toLowerCase())
    t.strictSame(phrases, lowerCase, source)
  }
  t.end()
})
