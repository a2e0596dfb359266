/** Components of pages: charts, browsers, DNS records, tables and sentences. */

import { browserName } from '../../../api/dashboard/components/browser-name.ts'
import {
  type Cell,
  lastActive,
  number,
  status,
  text,
  time,
  timeLeft,
} from '../../../api/dashboard/components/cell.ts'
import { figureSections } from '../../../api/dashboard/components/chart.ts'
import { cutValue, differenceWords, hostIn } from '../../../api/dashboard/components/dns.ts'
import { keepPercents } from '../../../api/dashboard/components/percent.ts'
import { emailSentence, meaningIn, webhookSentence } from '../../../api/dashboard/components/sentence.ts'
import { tableReady, withBreaks } from '../../../api/dashboard/components/table.ts'
import { textFacts } from '../../../api/dashboard/components/whatsapp-bubble.ts'
import { messageSentence } from '../../../api/dashboard/components/whatsapp-timeline.ts'
import { recordSection } from '../../../api/dashboard/pages/domain-records.ts'
import { shortAnswer } from '../../../api/dashboard/pages/webhooks/parts.ts'
import { buildTable, buttonCell, type Roles } from '../../../api/dashboard/server/builders.ts'
import type { Waiting } from '../../../db/delivery/waiting.ts'
import t from '../../support/tap.ts'

t.test("a webhook's answer is shown without its tags and its status", (t) => {
  const answer = (status: number | null, response: string) => shortAnswer({ status, response })
  t.equal(
    answer(503, '<html><h1>503 Service Unavailable</h1>\n No server'),
    'Service Unavailable · No server',
  )
  t.equal(answer(500, '{"error": "<b>"}'), '{"error": "<b>"}')
  t.equal(answer(200, ''), '')
  t.match(answer(null, 'connect ECONNREFUSED 127.0.0.1:1'), 'ECONNREFUSED')
  t.end()
})

/** Returns the labels of the y-axis for a day with this many emails. */
function labels(total: number): string[] {
  const layers = [{ label: 'delivered', tone: 'good', statuses: ['delivered'] }] as const
  const spans = [{ at: 'today', mark: null, counts: [total], total }]
  const [chart] = figureSections('Emails', { spans, layers, column: 'Day', title: 'By day', note: '' })
  return chart?.kind === 'chart' ? chart.ticks.map(({ label }) => label) : []
}

t.test('the y-axis has round values', (t) => {
  t.strictSame(labels(14_600), ['0', '5,000', '10,000', '15,000'])
  t.strictSame(labels(55), ['0', '20', '40', '60'])
  t.strictSame(labels(7), ['0', '2', '4', '6', '8'])
  t.strictSame(labels(1), ['0', '1'], 'no parts of an email')
  t.end()
})

t.test('a line can break in an address, not in a decimal', (t) => {
  t.equal(keepPercents('0.31 % of 7 emails, limit 10 %'), '0.31\u00a0% of 7 emails, limit 10\u00a0%')
  t.strictSame(withBreaks('38.2 % opened by anna@books.example.com, or not'), [
    '38.2 % opened by ',
    'anna@',
    'books.',
    'example.',
    'com,',
    ' or not',
  ])
  t.strictSame(withBreaks('about-38.25-percent'), ['about-', '38.25-', 'percent'])
  const short = 'About ana@example.com, 5.1.1'
  t.strictSame(withBreaks(short), [short], 'not in a word of at most 16 characters')
  t.strictSame(withBreaks('ana@example.com'), ['ana@', 'example.', 'com'], 'unless it is the only one')
  t.end()
})

/** A User-Agent header, with a list of facts about the system in its comment. */
const agent = (system: readonly string[], products: string): string =>
  `Mozilla/5.0 (${system.join('; ')}) ${products}`

const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0'
const EDGE = agent(['Windows NT 10.0', 'Win64', 'x64'], `${CHROME} Safari/537.36 Edg/130.0.0.0`)
const IPHONE = agent(
  ['iPhone', 'CPU iPhone OS 18_1 like Mac OS X'],
  'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
)
const PIXEL = agent(['Linux', 'Android 15', 'Pixel 9'], `${CHROME} Mobile Safari/537.36`)
const FIREFOX = agent(['X11', 'Linux x86_64', 'rv:132.0'], 'Gecko/20100101 Firefox/132.0')

t.test('a browser is named with its system, and an unknown one by its header', (t) => {
  t.strictSame([EDGE, IPHONE, PIXEL, FIREFOX, 'curl/8.11.0', 'Firefox/132.0', ''].map(browserName), [
    'Edge on Windows',
    'Safari on iOS',
    'Chrome on Android',
    'Firefox on Linux',
    'curl/8.11.0',
    'Firefox',
    '',
  ])
  t.end()
})

t.test('texts and URLs of a WhatsApp template are shown with their variables', (t) => {
  const components = [
    { type: 'HEADER', text: 'Order' },
    { type: 'BODY', text: 'Hello {{1}}' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'URL', text: 'See it', url: 'https://example.com/{{1}}' },
        { type: 'QUICK_REPLY', text: 'Stop' },
      ],
    },
  ]
  const [section] = textFacts({ components })
  t.match(section, {
    facts: [
      { label: 'Body', cell: { text: 'Hello {{1}}' } },
      { label: 'Button “See it”', cell: { text: 'https://example.com/{{1}}' } },
    ],
  })
  t.end()
})

t.test("the host is the name's part before its zone", async (t) => {
  t.equal(hostIn('example.com', 'hg1._domainkey.mail.example.com'), 'hg1._domainkey.mail')
  t.equal(hostIn('example.com', 'example.com'), '@')
  t.equal(hostIn('example.com', 'other.test'), 'other.test')
  t.equal(hostIn('example.com', 'mail.myexample.com'), 'mail.myexample.com')
  t.equal(hostIn(null, '_dmarc.example.com'), '_dmarc.example.com')
})

t.test('explains complete hosts if the zone is unknown', async (t) => {
  const note = (domain: string, zone: string | null) => {
    const name = `hg1._domainkey.${domain}`
    const record = { type: 'TXT', name, value: 'v=DKIM1; p=A', required: true } as const
    return recordSection([record], zone, { next_dkim_selector: null }).note
  }
  t.match(note('example.com', null), /adds \.example\.com, .* only hg1\._domainkey, for example\.$/)
  t.match(note('mail.example.com', null), /adds \.example\.com, .* only hg1\._domainkey\.mail, for/)
  t.match(note('a.mail.example.com', null), /adds \.mail\.example\.com, .* only hg1\._domainkey\.a, for/)
  t.match(note('example.co.uk', null), /adds \.example\.co\.uk, .* only hg1\._domainkey, for/)
  t.match(note('mail.example.com', 'example.com'), /^Hosts are shown without example\.com/)
})

t.test('describes how a record differs', async (t) => {
  const value = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
  const dkim = { name: 'hg1._domainkey.example.com', value }
  const said = (...published: string[]) => differenceWords(dkim, published)
  t.equal(said(value.slice(0, 200)), 'cut short: 200 of 410 characters')
  t.equal(said(`${value}AAAA`), 'too long: 414 instead of 410 characters')
  t.equal(said(value.replaceAll(';', '\\;')), 'contains stray quotation marks or backslashes')
  t.equal(said('v=DKIM1; k=rsa; p='), 'a revoked key: p= is empty')
  t.equal(said('v=DKIM1; k=rsa; p=BBBB'), 'a different key')
  t.equal(said('hello'), '', 'the state says it')
  const closest = said('hello', value.slice(0, 300))
  t.match(closest, /^none of the 2 records .* The closest one: cut short: 300 of 410/)
  const spf = { name: 'example.com', value: 'v=spf1 mx include:spf.relay.example -all' }
  t.equal(differenceWords(spf, ['v=spf1 mx -all']), 'lacks include:spf.relay.example')
  const several = differenceWords(spf, ['v=spf1 -all', 'v=spf1 mx -all'])
  t.equal(several, '2 SPF records, but receivers only accept one')
})

t.test('splits a value where the published one is cut short', async (t) => {
  const value = 'v=DKIM1; k=rsa; p=ABCDEF'
  const cut = (published: string) => cutValue(value, [published])
  t.strictSame(cut('v=DKIM1;k=rsa;p=ABC'), { present: 'v=DKIM1; k=rsa; p=ABC', missing: 'DEF' })
  for (const whole of [value, 'v=DKIM1; k=rsa; p=XYZ', `${value}G`, ''])
    t.strictSame(cut(whole), { present: value, missing: '' })
})

const NOW = new Date('2026-11-29T12:00:00Z')

type Row = { name: string; note: string }

/** Returns the classes and labels of cells, and the name for buttons. */
const layoutOf = (rows: readonly Row[], roles: Roles<'Created' | 'Note' | 'Name' | 'Revoke'>) =>
  tableReady(
    buildTable(
      rows,
      ({ name, note }) => ({
        Created: time(NOW.toISOString(), NOW),
        Note: text(note),
        Name: text(name),
        Revoke: buttonCell('/revoke', 'Revoke key'),
      }),
      { ...roles, empty: '' },
    ),
  ).rows.map(({ of, cells }) => ({ of, cells: cells.map(({ look, label }) => ({ look, label })) }))

const SHORT: Row = { name: 'Key A', note: 'imported' }
const LONG: Row = { name: 'The key of the shop in the old town', note: 'imported from the previous service' }

t.test('a long value doesn’t change the layout of its table', async (t) => {
  const [alone] = layoutOf([SHORT], { main: 'Name' })
  const [first, second] = layoutOf([SHORT, LONG], { main: 'Name' })
  t.strictSame(first, alone)
  t.strictSame(second?.cells, alone?.cells)
})

t.test('a short main column leaves its width to the other growing ones', async (t) => {
  const looks = (rows: readonly Row[]) =>
    layoutOf(rows, { main: 'Name', grow: ['Note', 'Name'] }).map(({ cells }) =>
      cells.slice(1, 3).map(({ look }) => look),
    )
  t.strictSame(looks([SHORT]), [['wide state', 'main self']])
  const growing = ['wide state', 'main wide self']
  t.strictSame(looks([SHORT, LONG]), [growing, growing])
})

t.test('the main column names buttons and grows', async (t) => {
  const [row] = layoutOf([SHORT], { main: 'Name' })
  t.equal(row?.of, 'Key A')
  t.strictSame(row?.cells.slice(0, 3), [
    { look: 'self last', label: false },
    { look: 'state', label: 'Note' },
    { look: 'main wide self', label: false },
  ])
})

t.test('wrapping columns don’t grow, and others do if named', async (t) => {
  const look = (roles: Parameters<typeof layoutOf>[1]) =>
    layoutOf([LONG], roles)[0]?.cells.map(({ look }) => look)
  t.strictSame(look({ main: 'Name', wrap: ['Name'] }), ['self last', 'state', 'main wrap self', 'self'])
  t.strictSame(look({ main: 'Name', grow: ['Note'] }), ['self last', 'wide state', 'main self', 'self'])
  t.strictSame(look({}), ['main wide self', '', '', 'self'])
})

/** Returns the labels of each row's cells in a card. */
const cardLabels = (rows: readonly Record<string, Cell | false>[]) =>
  tableReady(buildTable(rows, (row) => row, { empty: '' })).rows.map(({ cells }) =>
    cells.flatMap(({ label }) => label || []),
  )

/** Returns the places and labels of a table's cells in cards, by row. */
const placesOf = (rows: readonly Record<string, Cell>[], roles: Roles<string> = {}) =>
  tableReady(buildTable(rows, (row) => row, { ...roles, empty: '' })).rows.map(({ cells }) =>
    cells.map(({ look, label }) => `${look}${label ? ` ${label}` : ''}`),
  )

t.test('a state of any color is below the name in a card', (t) => {
  const rows = ['delivered', 'failed'].map((word) => ({
    Status: status(word),
    Name: text('Shop'),
    Response: text('200', { usual: word === 'delivered' }),
  }))
  t.strictSame(placesOf(rows, { main: 'Name' }), [
    ['self state', 'main wide self', 'half none Response'],
    ['self state', 'main wide self', 'half Response'],
  ])
  t.end()
})

t.test('a value has the same place in the cards of all rows', (t) => {
  const at = time(NOW.toISOString(), NOW)
  const row = (city: string, phone: string) => ({
    Name: text('Ana'),
    Status: status('subscribed'),
    City: text(city),
    Phone: text(phone),
    Note: text('', {}),
    Street: text(city === 'Rome' ? 'A long street in the old town' : 'Short'),
    Created: at,
  })
  t.strictSame(placesOf([row('Rome', '555'), row('', '555'), row('', '')], { main: 'Name' }), [
    ['main wide self', 'self state', 'half City', 'half Phone', 'none Note', ' Street', 'self last'],
    ['main wide self', 'self state', 'half gap City', 'half Phone', 'none Note', ' Street', 'self last'],
    [
      'main wide self',
      'self state',
      'half none City',
      'half none Phone',
      'none Note',
      ' Street',
      'self last',
    ],
  ])
  const cause = (word: string) => ({ Address: text('a@example.com'), Why: text(word), Created: at })
  t.strictSame(placesOf([cause('bounce'), cause('')], { main: 'Address' }), [
    ['main wide self', 'state Why', 'self last'],
    ['main wide self', 'state gap Why', 'self last'],
  ])
  t.end()
})

t.test('an actor that wraps is next to the time in a card', (t) => {
  const row = {
    When: time(NOW.toISOString(), NOW),
    Action: text('Added a topic'),
    By: text('ana@example.com'),
  }
  const roles = { main: 'Action', wrap: ['Action', 'By', 'About'] }
  t.strictSame(placesOf([{ ...row, About: text('News') }], roles), [
    ['self last', 'main wrap self', 'wrap self state', 'wrap About'],
  ])
  t.end()
})

t.test('a missing session is at the right like a time', (t) => {
  const row = (at: string | null) => ({
    Member: text('a@example.com'),
    Role: text('owner'),
    'Last active': lastActive(at, NOW),
  })
  const place = ['main wide self', 'state Role', 'self last']
  t.strictSame(placesOf([row(NOW.toISOString()), row(null)]), [place, place])
  t.end()
})

t.test('the state of sending is below the name in a card, without a label', (t) => {
  const row = { Number: text('acme'), Sending: status('paused'), Quality: status('high') }
  t.strictSame(placesOf([row]), [['main wide self', 'self state', 'half Quality']])
  t.end()
})

t.test('the time left is on one line', (t) => {
  const until = (seconds: number) => timeLeft(new Date(NOW.getTime() + seconds * 1_000).toISOString(), NOW)
  t.strictSame([until(12), until(520), until(7_200)], ['12\u00a0s', '8\u00a0min\u00a040\u00a0s', '2 hours'])
  t.end()
})

t.test('only growing values of a clear kind have no label in a card', (t) => {
  const row = { Name: text('Shop'), Scopes: text('everything'), Recipient: text('ana@example.com') }
  const named = (name: string) =>
    placesOf([{ ...row, Name: text(name) }], { main: 'Name', grow: ['Scopes', 'Recipient'] })
  t.strictSame(named('Shop'), [['main self', 'wide half Scopes', 'wide self next']])
  t.strictSame(named('A longer name of a shop'), [['main self', 'wide half Scopes', 'wide self']])
  const why = 'Why it wasn’t sent'
  const cells = { Name: text('Ana'), [why]: text('Had left the topic') }
  t.strictSame(placesOf([cells], { main: 'Name', grow: [why] }), [['main self', 'wide self']])
  const sent = (Problem: string) => ({
    To: text('+15555550101'),
    Template: text('order'),
    Problem: text(Problem),
  })
  t.strictSame(
    placesOf([sent('No reason given'), sent('')], { main: 'To', grow: ['Problem'] }),
    [
      ['main self', 'self next', 'wide self'],
      ['main self', 'self next', 'wide self none'],
    ],
    'a template is next to a short name',
  )
  t.end()
})

t.test('a number has its label in a card in every color', (t) => {
  const worse = number(0, { tone: 'bad' })
  const rows = [number(2), worse].map((Workers) => ({ Name: text('Emails'), Workers, Status: text('open') }))
  t.strictSame(cardLabels(rows), [
    ['Workers', 'Status'],
    ['Workers', 'Status'],
  ])
  t.end()
})

t.test('only a status needs no label in a card, in every color', (t) => {
  const cells = ['good', 'bad'].map((word) => {
    const [Status, Quality] = [status(word), status(word)]
    return { Name: text('Shop'), Quality, Template: text('order', { href: '/order' }), Status }
  })
  t.strictSame(cardLabels(cells), [
    ['Quality', 'Template'],
    ['Quality', 'Template'],
  ])
  t.end()
})

t.test('a time needs no label in a card if it is the only one, at an end', (t) => {
  const now = time(NOW.toISOString(), NOW)
  const never = time(null, NOW, 'never')
  const [Name, Note] = [text('News'), text('open')]
  t.strictSame(cardLabels([{ Name, Note, Changed: now, '': buttonCell('/end', 'End') }]), [['Note']])
  t.strictSame(cardLabels([{ Name, Created: now, Note }]), [['Created', 'Note']])
  const both = cardLabels([
    { Name, Used: now, Changed: now },
    { Name, Used: never, Changed: now },
  ])
  t.strictSame(both, [
    ['Used', 'Changed'],
    ['Used', 'Changed'],
  ])
  t.end()
})

t.test('a value that is cut among six columns has a tooltip', async (t) => {
  const number = '+436641234567'
  const whole = (columns: number) => {
    const cells = Object.fromEntries(Array.from({ length: columns }, (_, at) => [`${at}`, text(number)]))
    return tableReady(buildTable([cells], (row) => row, { empty: '' })).rows[0]?.cells[1]?.whole
  }
  t.equal(whole(5), false)
  t.equal(whole(6), number)
})

type Message = Parameters<typeof messageSentence>[0]

const noon = '2026-11-27T12:00:00Z'
const event = (kind: string) => ({ kind, time: noon, detail: '' })
const waiting = { state: 'not_taken_yet' } as Waiting
const isWaiting = /waiting to be sent/i

t.test('a WhatsApp message waits until Meta has accepted it', (t) => {
  const queued = (...kinds: string[]) => ({ status: 'queued', events: kinds.map(event) }) as Message
  t.match(messageSentence({ ...queued(), waiting }), isWaiting)
  const accepted = messageSentence(queued('accepted'))
  t.notMatch(accepted, /waiting/i)
  t.match(accepted, /Meta/)
  t.match(messageSentence({ ...queued('accepted', 'requeued'), waiting }), isWaiting, 'requeued later')
  t.end()
})

t.test('the sentence of a webhook has the number of attempts', (t) => {
  const attempt = { at: noon, status: 500, ms: 12, response: '' }
  const after = (status: 'queued' | 'delivered' | 'failed', attempts: number) =>
    webhookSentence({ status, attempts: Array.from({ length: attempts }, () => attempt), events: [] })
  t.match(after('queued', 0), isWaiting)
  for (const status of ['queued', 'delivered', 'failed'] as const)
    t.match(after(status, 2), /\b2 \w+/, status)
  t.match(after('delivered', 1), /\b1 attempt\b/)
  t.notMatch(after('queued', 2), isWaiting)
  t.end()
})

t.test('an email that failed no longer waits', (t) => {
  type Email = Parameters<typeof emailSentence>[0]
  const failed = { status: 'queued', events: [event('gave_up')], waiting: { ...waiting, state: 'failed' } }
  t.notMatch(emailSentence(failed as unknown as Email), /waiting/i)
  t.end()
})

t.test('an IP address is not the code of a response', (t) => {
  t.equal(meaningIn('host mx.example.com[5.2.2.7] said: 550 5.1.1 rejected'), 'the mailbox does not exist')
  t.equal(meaningIn('host mx.example.com[5.2.2.7] said: 550 rejected'), '')
  t.equal(meaningIn('550-5.2.2 Over quota'), 'the mailbox is full')
  t.end()
})
