/** How many sign-in links an address and a network can request. */
import { subscribeTeam } from '../../../db/accounts/teams/subscribe.ts'
import { signedIn, visitor } from '../../support/dashboard.ts'
import { jobsOf } from '../../support/rows.ts'
import { byCli, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'

let now = new Date('2026-11-21T12:00:00Z')
const { service, database, team } = await world(t, {
  clock: () => now,
  wake: () => {},
  dashboard: { from: 'Heliograph <login@example.com>' },
})

const wait = (ms: number): void => {
  now = new Date(now.getTime() + ms)
}
const HOUR = 3_600_000

const mails = async () => (await jobsOf(service, team.id)).length
const ask = (email: string, from: string) =>
  visitor(service).post('/login', { email }, { 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': from })
/** Sends concurrent requests, whose responses must be the same. @returns the number of links sent. */
async function linksOf(t: Test, count: number, of: (n: number) => [email: string, from: string]) {
  const before = await mails()
  const pages = await Promise.all(times(count, (n) => ask(...of(n))))
  t.equal(new Set(pages.map(({ status, html }) => `${status} ${html}`)).size, 1)
  return (await mails()) - before
}
const known = async (email: string) =>
  (await signedIn(service, { team: team.id, role: 'viewer', email })).email
const times = <T>(count: number, of: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => of(n))

t.test('limits an address to 5 links an hour per network', async (t) => {
  wait(2 * HOUR)
  const eager = await known('eager@example.com')
  t.equal(await linksOf(t, 7, () => [eager, '192.0.2.1']), 5)
  const forms = ['::ffff:192.0.2.1', '192.0.2.1:4711']
  t.equal(await linksOf(t, 2, (n) => [eager, forms[n] ?? '']), 0, 'the same address')
  t.equal(await linksOf(t, 7, (n) => [eager, `2001:db8:1:2:${n}::${n}`]), 5, 'an IPv6 /64')
  t.equal(await linksOf(t, 2, (n) => [eager, `[2001:0db8:1:2::${n}]:99`]), 0, 'the same /64')
  t.equal(await linksOf(t, 1, () => [eager, '2001:db8:1:3::1']), 1, 'another /64')
  t.equal(await linksOf(t, 1, () => [eager, '192.0.2.2']), 1, 'another address')
  wait(HOUR + 1_000)
  t.equal(await linksOf(t, 1, () => [eager, '192.0.2.1']), 1, 'an hour later')
})

t.test('limits an address to 20 links an hour', async (t) => {
  wait(2 * HOUR)
  const asked = await known('asked@example.com')
  t.equal(await linksOf(t, 24, (n) => [asked, `198.51.100.${n % 6}`]), 20)
  t.equal(await linksOf(t, 1, () => [asked, '198.51.100.99']), 0)
})

t.test('limits a network to 20 links an hour', async (t) => {
  wait(2 * HOUR)
  const people = await Promise.all(times(5, (n) => known(`office${n}@example.com`)))
  t.equal(await linksOf(t, 25, (n) => [people[n % 5] ?? '', `2001:db8:9:9::${n}`]), 20)
  t.equal(await linksOf(t, 1, () => [people[0] ?? '', '203.0.113.1']), 1)
})

t.test("requests that send nothing don't count towards the limits", async (t) => {
  wait(2 * HOUR)
  const patient = await known('patient@example.com')
  t.equal(await linksOf(t, 25, (n) => [`nobody${n}@example.com`, '203.0.113.5']), 0)
  t.equal(await linksOf(t, 25, () => ['no address', '203.0.113.5']), 0)
  const limited = { plan: 'pro', whatsapp_limit: 0, contact_limit: 0 } as const
  await database.transaction((tx) => subscribeTeam(byCli(tx), team.id, { ...limited, email_limit: 0 }))
  t.equal(await linksOf(t, 6, () => [patient, '203.0.113.5']), 0, 'the team has no quota')
  await database.transaction((tx) => subscribeTeam(byCli(tx), team.id, { ...limited, email_limit: 10_000 }))
  t.equal(await linksOf(t, 30, () => [patient, '203.0.113.5']), 5)
  t.equal(await linksOf(t, 16, (n) => [patient, `203.0.113.${6 + n}`]), 15, 'rejected ones do not count')
})
