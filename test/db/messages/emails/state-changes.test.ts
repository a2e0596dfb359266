/** How a state changes by attempts and reports, without a database. Orders and splits are in applied-events.test.ts. */
import {
  countedAfter,
  type EmailChange,
  needsEvents,
  type StoredEvent,
  type StoredState,
  stateAfter,
} from '../../../../db/messages/emails/state-changes.ts'
import t from '../../../support/tap.ts'

const QUEUED: StoredState = {
  ...{ status: 'queued', provider_message_id: null, size_kb: null, pending_recipients: null },
  ...{ suppression: null, hard_bounced: false },
}
const DEFERRED: EmailChange = {
  ...{ status: 'queued', provider_message_id: null, size_kb: null },
  pending: {
    left: ['b', 'c'],
    undecided: ['b', 'c'],
    seen: { provider_message_id: null, pending_recipients: null },
  },
}
/** The counts of a change that adds nothing. */
const NOTHING = { is_sent: false, is_hard: false, is_complaint: false, is_bounce: false, left_out: false }
const at = (kind: string, recipient: string, occurred_at: string, is_since = true): StoredEvent => ({
  kind,
  recipient,
  occurred_at,
  is_since,
})
const pendingAfter = (
  state: Partial<StoredState>,
  pending: EmailChange['pending'],
  ...events: StoredEvent[]
) => stateAfter({ ...QUEUED, ...state }, { ...DEFERRED, pending }, events).pending_recipients

t.test('an attempt leaves recipients unless the row has changed since', (t) => {
  t.strictSame(pendingAfter({}, DEFERRED.pending), ['b', 'c'])
  t.strictSame(pendingAfter({ provider_message_id: 'p' }, DEFERRED.pending), null)
  t.strictSame(pendingAfter({ pending_recipients: ['a', 'b'] }, DEFERRED.pending), ['b'])
  t.strictSame(pendingAfter({ pending_recipients: ['a'] }, 'none left'), null)
  t.strictSame(pendingAfter({ pending_recipients: ['a'] }, 'unchanged'), ['a'])
  const seen = { provider_message_id: null, pending_recipients: ['a', 'b'] }
  const retried = { left: ['b'], undecided: ['b'], seen }
  t.strictSame(pendingAfter({}, retried), null, 'a report has decided all of them')
  t.end()
})

t.test('a report decides its recipient until the email is accepted', (t) => {
  const reported = { reported: true, undecided: ['b'] } as const
  t.strictSame(pendingAfter({}, reported), ['b'])
  t.strictSame(pendingAfter({ pending_recipients: ['a', 'b'] }, reported), ['b'])
  t.strictSame(pendingAfter({ provider_message_id: 'p' }, reported), null)
  t.strictSame(pendingAfter({ status: 'sent' }, reported), null)
  t.strictSame(pendingAfter({ status: 'sent', pending_recipients: ['a', 'b'] }, reported), ['b'])
  t.strictSame(pendingAfter({}, reported, at('delivered', 'a', '1')), ['b'])
  t.strictSame(pendingAfter({}, reported, at('unknown', 'a', '1')), null, 'all were accepted together')
  t.end()
})

t.test("lost responses aren't retried after a report", (t) => {
  const pending = (...events: StoredEvent[]) =>
    pendingAfter({ pending_recipients: ['b', 'c'] }, 'unchanged', ...events)
  const lost = [at('unknown', 'b', '1'), at('unknown', 'c', '1')]
  t.strictSame(pending(...lost), ['b', 'c'])
  t.strictSame(pending(...lost, at('delivered', 'b', '2')), null, 'both were accepted together')
  t.strictSame(pending(...lost, at('unknown', 'b', '3'), at('delivered', 'b', '4')), ['c'])
  t.strictSame(pending(...lost, at('delivered', 'b', '2', false)), ['b', 'c'], 'before it was requeued')
  t.strictSame(pending(...lost, at('bounced', 'b', '1')), ['b', 'c'], 'a rejection by the attempt')
  t.strictSame(pending(...lost, at('bounced', 'b', '2')), null, 'a report of a bounce')
  t.strictSame(pending(...lost, at('delivered', 'b', '1')), null, 'a report at the time of the attempt')
  for (const kind of ['deferred', 'held'])
    t.strictSame(
      pending(at('unknown', 'b', '1'), at(kind, 'c', '3'), at('bounced', 'b', '3')),
      ['b', 'c'],
      `a rejection by an attempt in which another recipient was ${kind}`,
    )
  t.strictSame(
    pending(
      at('unknown', 'b', '1'),
      at('sent', 'c', '2'),
      at('unknown', 'c', '1'),
      at('delivered', 'c', '3'),
    ),
    ['b'],
    'c was also accepted in an attempt without b',
  )
  t.strictSame(pending(at('unknown', 'b', '1'), at('delivered', 'c', '2')), ['b', 'c'])
  t.end()
})

t.test('events are only needed while recipients are pending', (t) => {
  t.equal(needsEvents(QUEUED, { ...DEFERRED, pending: 'unchanged' }), false)
  t.equal(needsEvents({ ...QUEUED, pending_recipients: ['a'] }, { ...DEFERRED, pending: 'none left' }), false)
  t.equal(needsEvents(QUEUED, DEFERRED), true)
  t.equal(needsEvents(QUEUED, { ...DEFERRED, pending: { reported: true, undecided: [] } }), true)
  t.end()
})

t.test('an email to only suppressed recipients bounces unsent', (t) => {
  const change: EmailChange = { ...DEFERRED, pending: 'suppressed', left_out: true }
  const after = stateAfter(QUEUED, change, [])
  t.match(after, { status: 'bounced', suppression: 'applied' })
  t.strictSame(countedAfter(QUEUED, after, change), { ...NOTHING, left_out: true })
  const sent: StoredState = { ...QUEUED, status: 'sent' }
  t.match(stateAfter(sent, change, []), { status: 'sent', suppression: null })
  t.end()
})

t.test('stored values stay', (t) => {
  const change: EmailChange = { ...DEFERRED, provider_message_id: 'new', size_kb: 5, pending: 'none left' }
  const old: StoredState = { ...QUEUED, provider_message_id: 'old', size_kb: 3, hard_bounced: true }
  t.match(stateAfter(QUEUED, change, []), { provider_message_id: 'new', size_kb: 5, hard_bounced: false })
  t.match(stateAfter(old, change, []), { provider_message_id: 'old', size_kb: 3, hard_bounced: true })
  t.match(stateAfter(QUEUED, { ...change, hard_bounced: true }, []), { hard_bounced: true })
  t.match(stateAfter(QUEUED, change, []), { status: 'queued', suppression: null })
  t.end()
})

t.test('counts an email as sent, bounced and complained', (t) => {
  const counts = (before: Partial<StoredState>, status: StoredState['status'], suppression?: string) => {
    const state = { ...QUEUED, ...before }
    const change: EmailChange = { ...DEFERRED, status, pending: 'none left' }
    return countedAfter(state, { ...state, status, suppression: suppression ?? null }, change)
  }
  t.strictSame(counts({}, 'queued'), NOTHING)
  t.strictSame(counts({}, 'sent'), { ...NOTHING, is_sent: true })
  t.strictSame(counts({ status: 'sent' }, 'sent'), NOTHING)
  t.strictSame(counts({ status: 'sent' }, 'delivered'), NOTHING)
  t.strictSame(counts({}, 'bounced'), { ...NOTHING, is_sent: true, is_bounce: true })
  t.strictSame(counts({ status: 'sent' }, 'bounced'), { ...NOTHING, is_bounce: true })
  t.strictSame(counts({ status: 'bounced' }, 'bounced'), NOTHING)
  t.strictSame(counts({}, 'bounced', 'applied'), NOTHING)
  t.strictSame(counts({ status: 'delivered' }, 'complained'), { ...NOTHING, is_complaint: true })
  t.strictSame(counts({ status: 'complained' }, 'complained'), NOTHING)
  t.end()
})

t.test('counts one hard bounce per email and requeue', (t) => {
  const change: EmailChange = { ...DEFERRED, status: 'bounced', pending: 'none left', hard_bounced: true }
  const isHard = (state: Partial<StoredState>) => {
    const before = { ...QUEUED, ...state }
    return countedAfter(before, stateAfter(before, change, []), change).is_hard
  }
  t.equal(isHard({ status: 'sent' }), true)
  t.equal(isHard({ status: 'sent', hard_bounced: true }), false)
  t.equal(isHard({ status: 'queued', hard_bounced: true }), true)
  t.end()
})
