/** Timelines of messages with many events. */
import { buildMoments, recipientOutcomes } from '../../../api/dashboard/components/timeline.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import t from '../../support/tap.ts'

const AT = Date.parse('2026-11-27T12:00:00Z')
const viewer = { person: { operator: false }, now: new Date(AT) }

const event = (index: number, recipient: string | null, kind = 'opened') => ({
  ...{ kind, recipient, detail: '' },
  time: new Date(AT - 1_000_000 + index).toISOString(),
})

t.test('a timeline shows the latest 500 entries of a kind', (t) => {
  const events = Array.from({ length: 20_000 }, (_, index) => event(index, 'all@example.com'))
  const moments = buildMoments({ events, created_at: new Date(AT).toISOString() }, viewer)
  t.equal(moments.length, 502)
  t.match(moments.slice(-3), [
    { title: 'Opened' },
    { title: 'Opened: 19,500 earlier entries not shown here', at: { iso: events[19_499]?.time } },
    { title: 'Accepted by the API' },
  ])
  const few = buildMoments({ events: events.slice(0, 500), created_at: new Date(AT).toISOString() }, viewer)
  t.equal(few.length, 501)
  t.end()
})

t.test("many opens don't hide other events of the timeline", (t) => {
  const opens = (from: number) =>
    Array.from({ length: 600 }, (_, index) => event(from + index, 'all@example.com'))
  const events = [
    ...[event(0, null, 'sent'), event(1, 'all@example.com', 'delivered')],
    ...[...opens(2), event(602, 'bo@example.com', 'bounced'), ...opens(603)],
  ]
  const moments = buildMoments({ events, created_at: new Date(AT).toISOString() }, viewer)
  t.strictSame(
    moments.flatMap(({ title }) => (title === 'Opened' ? [] : [title])),
    [
      'Opened: 700 earlier entries not shown here',
      ...['Bounced', 'Delivered', 'Accepted by the mail server', 'Accepted by the API'],
    ],
  )
  t.equal(moments.length, 505)
  t.end()
})

t.test('each recipient has the highest status of their own events', (t) => {
  const events = [
    event(0, null, 'sent'),
    event(1, 'Ana@example.com', 'clicked'),
    event(2, 'ana@EXAMPLE.com', 'delivered'),
    event(3, 'bo@example.com', 'bounced'),
  ]
  const email = {
    events,
    status: 'bounced',
    to_emails: ['ana@example.com', 'bo@example.com', 'cy@example.com'],
  }
  const outcomes = recipientOutcomes(email as unknown as ShownEmail, viewer)
  const names = outcomes.map(({ outcome }) => outcome)
  t.strictSame(names, ['clicked', 'bounced', 'bounced'])
  t.end()
})
