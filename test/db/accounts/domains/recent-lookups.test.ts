/** Remembered responses of DNS. */
import { createRecentLookups } from '../../../../db/accounts/domains/recent-lookups.ts'
import t from '../../../support/tap.ts'

/** Creates lookups that count their queries, with a stopped clock. */
function createCounting() {
  const state = { asked: 0, now: Date.parse('2026-11-30T12:00:00Z'), fails: false }
  const look = async (name: string): Promise<string[]> => {
    state.asked += 1
    if (state.fails) throw new Error('no response')
    return [`${name} ${state.asked}`]
  }
  const lookups = { lookupTxt: look, lookupCname: look, lookupMx: look }
  const zoneOf = async (name: string) => (state.fails ? null : ((await look(name))[0] ?? null))
  return { state, recent: createRecentLookups({ ...lookups, zoneOf }, () => new Date(state.now)) }
}

t.test('a response is used again for a minute', async (t) => {
  const { state, recent } = createCounting()
  const first = await recent.lookupTxt('a.test')
  state.now += 59_000
  t.strictSame(await recent.lookupTxt('a.test'), first)
  t.equal(state.asked, 1)
  await recent.lookupCname('a.test')
  t.equal(state.asked, 2, 'each type of record is separate')
  const hosts = await recent.lookupMx('a.test')
  t.strictSame(await recent.lookupMx('a.test'), hosts)
  t.equal(state.asked, 3)
  state.now += 1_000
  t.strictNotSame(await recent.lookupTxt('a.test'), first)
  t.equal(state.asked, 4)
})

t.test('fresh lookups replace remembered responses', async (t) => {
  const { state, recent } = createCounting()
  await recent.lookupTxt('a.test')
  state.now += 10_000
  const second = await recent.fresh.lookupTxt('a.test')
  t.equal(state.asked, 2)
  t.strictSame(await recent.lookupTxt('a.test'), second)
  t.strictSame(recent.lookedUpAt([{ type: 'TXT', name: 'a.test' }]), new Date(state.now))
})

t.test('the oldest response decides when records were looked up', async (t) => {
  const { state, recent } = createCounting()
  const at = new Date(state.now)
  await recent.lookupTxt('a.test')
  state.now += 5_000
  await recent.lookupCname('b.test')
  const records = [
    { type: 'TXT', name: 'a.test' },
    { type: 'CNAME', name: 'b.test' },
  ] as const
  t.strictSame(recent.lookedUpAt(records), at)
  t.equal(recent.lookedUpAt([...records, { type: 'TXT', name: 'c.test' }]), null)
  t.equal(recent.lookedUpAt([]), null)
})

t.test("errors aren't remembered", async (t) => {
  const { state, recent } = createCounting()
  state.fails = true
  await t.rejects(recent.lookupTxt('a.test'))
  t.equal(await recent.zoneOf('a.test'), null)
  state.fails = false
  t.strictSame((await recent.lookupTxt('a.test')).length, 1)
  t.match(await recent.zoneOf('a.test'), 'a.test')
})

t.test('remembers only 500 responses', async (t) => {
  const { state, recent } = createCounting()
  for (let at = 0; at <= 500; at += 1) await recent.lookupTxt(`${at}.test`)
  await recent.lookupTxt('500.test')
  t.equal(state.asked, 501)
  await recent.lookupTxt('0.test')
  t.equal(state.asked, 502)
})
