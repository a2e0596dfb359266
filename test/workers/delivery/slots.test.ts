/** How queues and senders share a process's slots. Rules only: no database, no time. */
import { type Applicant, createSlots, type SlotShare } from '../../../workers/delivery/slots.ts'
import t from '../../support/tap.ts'

const PATIENCE = 60_000

/** Creates work that runs until it is ended, and records the started items. */
function work() {
  const running: { name: string; end: () => void }[] = []
  const begun: string[] = []
  const ended: Promise<unknown>[] = []
  const begin = (share: SlotShare, name: string, applicant: Partial<Applicant> = {}): void => {
    const own: Applicant = { sender: { key: name }, isProven: () => true, ...applicant }
    const one = async () => {
      begun.push(name)
      const { promise, resolve } = Promise.withResolvers<void>()
      running.push({ name, end: resolve })
      await promise
    }
    ended.push(share.run(own, one, PATIENCE))
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  /** Ends the oldest one of a name. */
  const end = async (name: string): Promise<void> => {
    const place = running.findIndex((each) => each.name === name)
    running.splice(place, 1)[0]?.end()
    await settle()
  }
  const endAll = async (): Promise<void> => {
    for (let [first] = running; first; [first] = running) await end(first.name)
    await Promise.all(ended)
  }
  const count = (name: string) => running.filter((each) => each.name === name).length
  return { begun, begin, settle, count, end, endAll }
}

t.test('a queue never exceeds its share; the rest is for others', async (t) => {
  const slots = createSlots(8)
  const [single, bulk] = [slots.share(), slots.share({ most: 0.5 })]
  t.strictSame([single.size, bulk.size], [8, 4])
  const { begin, count, endAll, settle, end } = work()
  for (let each = 0; each < 20; each++) begin(bulk, 'bulk')
  await settle()
  t.equal(count('bulk'), 4, 'half of the slots stay free for single messages')
  for (let each = 0; each < 20; each++) begin(single, 'single')
  await settle()
  t.equal(count('single'), 4)
  await end('bulk')
  t.strictSame([count('single'), count('bulk')], [4, 4], 'each has its part while both want it')
  await endAll()
})

t.test('large messages get half of the slots', async (t) => {
  const slots = createSlots(8)
  const [single, bulk] = [slots.share(), slots.share({ most: 0.5 })]
  const { begin, count, end, endAll, settle } = work()
  for (let each = 0; each < 20; each++) begin(single, 'large', { sender: { key: 'one' }, is_large: true })
  await settle()
  t.equal(count('large'), 4)
  for (let each = 0; each < 20; each++) begin(bulk, 'bulk')
  await settle()
  t.equal(count('bulk'), 4)
  begin(single, 'single', { sender: { key: 'one' } })
  await end('bulk')
  t.strictSame([count('large'), count('single'), count('bulk')], [4, 1, 3], 'not behind its sender’s large')
  await end('large')
  t.equal(count('large'), 4, 'the next large one has its place')
  await endAll()
})

t.test('a free slot goes to the least busy queue', async (t) => {
  const slots = createSlots(8)
  const [one, other] = [slots.share(), slots.share()]
  const { begin, count, end, endAll, settle } = work()
  for (let each = 0; each < 20; each++) begin(one, 'one')
  await settle()
  t.equal(count('one'), 8, 'alone it may have all')
  for (let each = 0; each < 20; each++) begin(other, 'other')
  for (let each = 0; each < 8; each++) await end('one')
  t.strictSame([count('one'), count('other')], [4, 4])
  await endAll()
})

t.test('a sender has one slot until its first success', async (t) => {
  const share = createSlots(8).share()
  const { begin, begun, count, end, endAll, settle } = work()
  const sender = { key: 'endpoint', at_once: 4 }
  let proven = false
  for (let each = 0; each < 6; each++) begin(share, 'endpoint', { sender, isProven: () => proven })
  begin(share, 'other')
  await settle()
  t.equal(count('endpoint'), 1)
  t.strictSame(begun, ['endpoint', 'other'], 'those that wait hold up no other')
  proven = true
  await end('endpoint')
  t.equal(count('endpoint'), 4)
  await endAll()
})

t.test('slow and failing senders share half of the slots', async (t) => {
  const share = createSlots(8).share()
  const { begin, count, endAll, settle } = work()
  for (let each = 0; each < 10; each++)
    begin(share, 'hanging', { sender: { key: `hanging ${each}`, at_once: 4 }, isProven: () => false })
  for (let each = 0; each < 10; each++) begin(share, 'healthy', { sender: { key: 'healthy', at_once: 4 } })
  await settle()
  t.strictSame([count('hanging'), count('healthy')], [4, 4])
  await endAll()
})

t.test('a sender that returns a slot can use another', async (t) => {
  const share = createSlots(8).share()
  const { begin, count, end, endAll, settle } = work()
  for (let each = 0; each < 6; each++) begin(share, 'busy', { sender: { key: 'busy', at_once: 2 } })
  await settle()
  t.equal(count('busy'), 2)
  await end('busy')
  t.equal(count('busy'), 2)
  await endAll()
})

t.test('slow work releases slots, up to their number', async (t) => {
  const share = createSlots(2, 1).share()
  const { begin, count, end, endAll, settle } = work()
  const late = () => new Promise((resolve) => setTimeout(resolve, 20))
  const hang = async (key: string): Promise<void> => {
    for (let each = 0; each < 2; each++) begin(share, key, { sender: { key, at_once: 4 } })
    await late()
  }
  await hang('first')
  await hang('second')
  t.strictSame([count('first'), count('second')], [2, 2], 'the first two step aside')
  begin(share, 'third')
  await settle()
  t.equal(count('third'), 0, 'no more than two do')
  await end('first')
  await late()
  begin(share, 'fourth', { sender: { key: 'fourth', at_once: 4 } })
  await end('second')
  await late()
  t.strictSame([count('third'), count('fourth')], [1, 1])
  await endAll()
  await hang('fifth')
  t.equal(count('fifth'), 2)
  await endAll()
})

t.test('a sender that steps aside frees one slot', async (t) => {
  const share = createSlots(2, 1).share()
  const { begin, count, end, endAll, settle } = work()
  const late = () => new Promise((resolve) => setTimeout(resolve, 20))
  const slow = (key: string) => begin(share, key, { sender: { key, at_once: 1 }, isProven: () => false })
  slow('one')
  await late()
  slow('one')
  slow('other')
  await settle()
  t.strictSame([count('one'), count('other')], [1, 1])
  for (let each = 0; each < 4; each++) begin(share, 'free')
  await late()
  t.equal(count('free'), 2, 'both have stepped aside')
  await end('free')
  await end('one')
  t.strictSame([count('one'), count('free')], [0, 2], 'there is no slot for the next of its sender')
  await endAll()
  t.equal(count('one'), 0)
})

t.test('a sender without a limit never steps aside', async (t) => {
  const share = createSlots(1, 1).share()
  const { begin, count, endAll } = work()
  begin(share, 'first')
  begin(share, 'second')
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.strictSame([count('first'), count('second')], [1, 0])
  await endAll()
})

t.test("abandoned work doesn't use a slot that becomes free", async (t) => {
  const share = createSlots(1).share()
  const { begin, count, end, endAll, settle } = work()
  begin(share, 'first')
  await settle()
  t.equal(await share.run({ sender: { key: 'late' }, isProven: () => true }, async () => 'begun', 1), null)
  await end('first')
  begin(share, 'next')
  await settle()
  t.equal(count('next'), 1)
  await endAll()
})

t.test('work without a slot in time never starts', async (t) => {
  const share = createSlots(1).share()
  const { begin, begun, endAll, settle } = work()
  begin(share, 'first')
  await settle()
  const applicant = { sender: { key: 'late' }, isProven: () => true }
  const never = async () => t.fail('it must not begin')
  t.equal(await share.run(applicant, never, 1), null)
  const waiting = share.run(applicant, never, PATIENCE)
  share.close()
  t.equal(await waiting, null)
  t.equal(await share.run(applicant, never, PATIENCE), null)
  t.strictSame(begun, ['first'])
  await endAll()
})
