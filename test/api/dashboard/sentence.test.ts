/** The sentence at the top of a message's page. */
import { emailSentence, meaningIn, webhookSentence } from '../../../api/dashboard/components/sentence.ts'
import { messageSentence } from '../../../api/dashboard/components/whatsapp-timeline.ts'
import type { Waiting } from '../../../db/delivery/waiting.ts'
import t from '../../support/tap.ts'

type Message = Parameters<typeof messageSentence>[0]

const time = '2026-11-27T12:00:00Z'
const event = (kind: string) => ({ kind, time, detail: '' })
const waiting = { state: 'not_taken_yet' } as Waiting
const isWaiting = /waiting to be sent/i

t.test('a WhatsApp message waits until the provider has accepted it', (t) => {
  const queued = (...kinds: string[]) => ({ status: 'queued', events: kinds.map(event) }) as Message
  t.match(messageSentence({ ...queued(), waiting }), isWaiting)
  const accepted = messageSentence(queued('accepted'))
  t.notMatch(accepted, /waiting/i)
  t.match(accepted, /provider/)
  t.match(messageSentence({ ...queued('accepted', 'requeued'), waiting }), isWaiting, 'requeued later')
  t.end()
})

t.test('the sentence of a webhook has the number of attempts', (t) => {
  const attempt = { at: time, status: 500, ms: 12, response: '' }
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
