/** A row's status only rises, whatever the order and number of events. */
import { array, assert, constantFrom, property } from 'fast-check'
import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { createLadder } from '../../../db/channels/status-order.ts'
import { WHATSAPP_LADDER } from '../../../db/channels/whatsapp.ts'
import { higherStatus, isRare, linkIn, statusOfEvent } from '../../../db/messages/emails/status.ts'
import t from '../../support/tap.ts'

for (const rungs of [EMAIL_LADDER, WHATSAPP_LADDER] as const) {
  const ladder = createLadder<string>(rungs)
  t.test(`any order ends in the same status: ${rungs.join(' < ')}`, (t) => {
    const climb = (all: readonly string[]) => all.reduce(ladder.higher, rungs[0])
    assert(
      property(array(constantFrom(...rungs)), array(constantFrom(...rungs)), (some, more) => {
        const highest =
          rungs[Math.max(0, ...[...some, ...more].map((status) => rungs.indexOf(status as never)))]
        return climb([...some, ...more, ...some]) === highest && climb([...more, ...some]) === highest
      }),
    )
    for (const status of rungs) t.equal(ladder.statusOf(status), status)
    t.equal(ladder.statusOf('deferred'), rungs[0], 'what is no status moves nothing')
    t.end()
  })
}

t.test("events raise an email's status, and bounces and complaints are rare", (t) => {
  t.equal(statusOfEvent('requeued'), 'queued')
  t.equal(statusOfEvent('clicked'), 'clicked')
  t.equal(higherStatus('opened', 'delivered'), 'opened')
  t.strictSame(EMAIL_LADDER.filter(isRare), ['bounced', 'complained'])
  t.notOk(isRare(undefined))
  t.end()
})

t.test('linking events name the other email and the actor', (t) => {
  for (const kind of ['resent', 'copied', 'resent_from', 'copied_from'] as const)
    t.strictSame(linkIn({ kind, detail: 'the-id by ana@example.com' }), {
      ...{ kind, id: 'the-id', by: 'ana@example.com' },
    })
  t.strictSame(linkIn({ kind: 'copied', detail: 'the-id' }), { kind: 'copied', id: 'the-id', by: '' })
  t.equal(linkIn({ kind: 'delivered', detail: 'the-id by ana@example.com' }), null)
  t.end()
})
