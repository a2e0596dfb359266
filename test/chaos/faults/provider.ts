/** Faults of the relay and its network. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestTeam } from '../../support/service.ts'
import { emailsOf, settle } from '../account.ts'
import { type Fault, isPatient, type Outcome } from '../fault.ts'
import { attempt, insist, type Load, send, sendBatches } from '../load.ts'
import type { Answer, Manners } from '../relay.ts'
import { type World, within } from '../world.ts'

/** Misbehaves for one in `often` messages. */
const oneIn = (often: number, misbehave: Manners): Manners => {
  let nth = 0
  return (step, line) => (nth++ % often === 0 ? misbehave(step, line) : undefined)
}

/** Defines a fault whose relay misbehaves while email is accepted, and behaves again at the end. */
const rude = (
  { id, words, count = 400, ...limits }: { id: string; words: string; count?: number } & Partial<Outcome>,
  manners: () => Manners,
): Fault => ({
  id,
  words,
  load: `${count} singles`,
  async run(world, scale) {
    const team = await world.team()
    world.relay.manners(manners())
    const load = await send(world, [team], count * scale)
    world.relay.manners(() => undefined)
    return { ...(await settle(world, load)), limit: 60, ...limits }
  },
})

/** Defines a fault of the network to the relay that lasts for some seconds. */
const inTheWay = (
  { id, words, seconds, limit }: { id: string; words: string; seconds: number; limit: number },
  strike: (world: World) => () => void,
): Fault => ({
  id,
  words: `${words} for ${seconds} s`,
  load: '600 in batches',
  async run(world, scale) {
    const team = await world.team()
    const repair = strike(world)
    const load = await sendBatches(world, team, 600 * scale)
    await sleep(seconds * 1_000)
    repair()
    const account = await settle(world, load)
    return { ...account, over: account.over + (await emailsOf(world, team, 'bounced')), limit }
  },
})

/** A relay that is slow for some messages. Each message arrives once, and every row is `sent`. */
const slowDot = (id: string, seconds: number): Fault => ({
  id,
  words: `one response in fifty to the final dot comes after ${seconds} s`,
  load: '100 singles',
  patient: isPatient(seconds),
  async run(world, scale) {
    const team = await world.team()
    world.relay.manners(
      oneIn(50, async (step) => {
        if (step === 'dot') await sleep(seconds * 1_000)
        return undefined
      }),
    )
    const load = await send(world, [team], 100 * scale)
    const count = load.accepted.size
    await within(seconds + 30, async () => (await emailsOf(world, team, 'sent')) === count)
    const account = await settle(world, load)
    const unsent = count - (await emailsOf(world, team, 'sent'))
    return { ...account, over: account.over + unsent + account.repeated }
  },
})

/** Returns the seconds until a message's job is due. Null without a waiting job. */
async function dueIn({ sql }: World, id: string): Promise<number | null> {
  const [job] = await sql<{ seconds: string }>(
    `select extract(epoch from start_after - now()) as seconds from pgboss.job
      where name = 'deliver-email' and id = $1 and state < 'active'`,
    [id],
  )
  return job ? Number(job.seconds) : null
}

/**
 * Counts copies of messages whose responses are always lost. Attempts are ten minutes apart, so the clock is
 * moved forward.
 */
async function loseAnswers(world: World, ids: readonly string[]): Promise<{ early: number }> {
  let early = 0
  const copies = (id: string): number => world.relay.copies.get(id)?.length ?? 0
  for (const wanted of [1, 2, 3]) {
    await within(60, () => ids.every((id) => copies(id) >= wanted))
    for (const id of ids) {
      let due: number | null = null
      // After the third attempt the message needs manual action and has no job.
      await within(wanted === 3 ? 5 : 30, async () => {
        due = await dueIn(world, id)
        return due !== null
      })
      if (due !== null && due < 570) early += 1
    }
    await world.sql(
      `update pgboss.job set start_after = now() where name = 'deliver-email' and state < 'active' and id = any($1)`,
      [ids],
    )
  }
  await sleep(5_000)
  return { early }
}

/** Counts the events of a team's emails. */
async function eventsOf({ sql }: World, { id }: TestTeam): Promise<number> {
  const [row] = await sql<{ count: string }>(
    'select count(*) as count from email_events where team_id = $1',
    [id],
  )
  return Number(row?.count)
}

const refusing =
  (answer: Answer) =>
  ({ relay }: World) => {
    relay.manners((step) => (step === 'mail' ? answer : undefined))
    return () => relay.manners(() => undefined)
  }

export const providerFaults: readonly Fault[] = [
  rude({ id: 'C/421', words: 'one response in seven is 421, 450, 451 or 452' }, () => {
    const codes = ['450 4.2.1 later', '451 4.3.0 later', '452 4.3.1 later', '421 4.7.0 later']
    let nth = 0
    return oneIn(7, (step) => (step === 'rcpt' || step === 'dot' ? codes[nth++ % codes.length] : undefined))
  }),
  rude(
    { id: 'C/reset', words: 'the connection is cut or reset at one step in nine before the final dot' },
    () => {
      let nth = 0
      return oneIn(9, (step) => (step === 'dot' ? undefined : nth++ % 2 === 0 ? 'drop' : 'reset'))
    },
  ),
  rude(
    { id: 'C/lost', words: 'one response in fifty to the final dot is lost: no email is sent again' },
    () => oneIn(50, (step) => (step === 'dot' ? 'reset' : undefined)),
  ),
  rude({ id: 'C/nul', words: 'one response in seven contains NULs and unpaired surrogates' }, () =>
    oneIn(7, (step) => (step === 'dot' ? '451 4.3.0 \0\ufffd later' : undefined)),
  ),
  rude({ id: 'C/endless', words: 'one response in a hundred is an endless line', ...{ count: 200 } }, () =>
    oneIn(100, (step) => (step === 'rcpt' ? 'endless' : undefined)),
  ),
  slowDot('F/dot40', 40),
  slowDot('F/dot110', 110),
  slowDot('F/dot540', 540),
  {
    id: 'F/taken',
    words: 'a server that accepts an email and cuts the connection: at most three copies, ten minutes apart',
    load: '5 singles, then 100 (only these are counted)',
    async run(world, scale) {
      const team = await world.team()
      world.relay.manners((step) => (step === 'dot' ? 'reset' : undefined))
      const cut = await send(world, [team], 5)
      const ids = [...cut.accepted.values()]
      const { early } = await loseAnswers(world, ids)
      world.relay.manners(() => undefined)
      const most = Math.max(...ids.map((id) => world.relay.copies.get(id)?.length ?? 0))
      const load = await send(world, [team], 100 * scale)
      const account = await settle(world, load)
      return {
        ...account,
        over: account.over + early + Math.abs(most - 3),
        note: `${most} copies`,
        limit: 30,
      }
    },
  },
  {
    id: 'F/policy',
    words: 'one recipient rejected by policy (550 5.7.1): only its emails bounce',
    load: '200 singles, one in twenty to it',
    async run(world, scale) {
      const team = await world.team()
      const refused = 'refused@example.org'
      await attempt(world, team, { email: refused }, '/v1/contacts')
      world.relay.manners((step, line) =>
        step === 'rcpt' && line.includes(refused) ? '550 5.7.1 not from you' : undefined,
      )
      const load: Load = { accepted: new Map(), wrong: [] }
      const unwanted: Load = { accepted: new Map(), wrong: [] }
      for (let nth = 0; nth < 200 * scale; nth++) {
        const [to, kind] = nth % 20 === 10 ? [refused, unwanted] : ['someone@example.org', load]
        await insist(world, team, `${team.id}-${nth}`, kind, { to: [to] })
      }
      const account = await settle(world, load)
      const count = unwanted.accepted.size
      await within(30, async () => (await emailsOf(world, team, 'bounced')) === count)
      const touched = await world.sql(
        `select 1 from contacts where team_id = $1 and status <> 'subscribed'`,
        [team.id],
      )
      const wrong = Math.abs((await emailsOf(world, team, 'bounced')) - count) + touched.length
      return { ...account, over: account.over + wrong, limit: 30 }
    },
  },
  inTheWay(
    { id: 'C/frozen', words: 'a half-open network to the relay', seconds: 15, limit: 60 },
    ({ toRelay }) => {
      toRelay.weather('freeze')
      return () => toRelay.weather('calm')
    },
  ),
  inTheWay(
    { id: 'C/drip', words: 'a network that passes a byte a millisecond', seconds: 10, limit: 60 },
    ({ toRelay }) => {
      toRelay.weather('drip')
      return () => toRelay.weather('calm')
    },
  ),
  {
    id: 'F/down',
    words: 'a relay that is down for 60 s: few connections and events',
    load: '600 in batches',
    async run(world, scale) {
      const team = await world.team()
      world.toRelay.weather('refuse')
      world.toRelay.cut()
      const load = await sendBatches(world, team, 600 * scale)
      const asked = world.toRelay.asked()
      await sleep(60_000)
      const probes = world.toRelay.asked() - asked
      const events = await eventsOf(world, team)
      world.toRelay.weather('calm')
      const account = await settle(world, load)
      // Each of the two workers checks at least every half minute, and at most every few seconds.
      const storm = Math.max(0, probes - 60)
      const note = `${probes} connections, ${events} events`
      return { ...account, over: account.over + events + storm, note, limit: 10 }
    },
  },
  inTheWay(
    { id: 'F/setup', words: 'a relay that rejects our configuration (554 5.7.1)', seconds: 60, limit: 60 },
    refusing('554 5.7.1 relay access denied'),
  ),
  {
    id: 'F/refused',
    words: 'a relay that rejects everything for 10 min (554 5.7.1): no email bounces',
    load: '1,000 in batches',
    patient: true,
    async run(world, scale) {
      const team = await world.team()
      world.relay.manners((step) => (step === 'rcpt' ? '554 5.7.1 relay access denied' : undefined))
      const load = await sendBatches(world, team, 1_000 * scale)
      await sleep(600_000)
      world.relay.manners(() => undefined)
      const account = await settle(world, load)
      const bounced = await emailsOf(world, team, 'bounced')
      const events = await eventsOf(world, team)
      return { ...account, over: account.over + bounced, note: `${events} events`, limit: 60 }
    },
  },
  inTheWay(
    { id: 'F/hurried', words: 'a relay that throttles (421 at MAIL)', seconds: 20, limit: 120 },
    refusing('421 4.7.0 too fast'),
  ),
]
