/** A relay and a network that misbehave: reliability C and F. */
import { setTimeout as sleep } from 'node:timers/promises'
import { settle } from '../account.ts'
import type { Fault, Outcome } from '../fault.ts'
import { send, sendBatches } from '../load.ts'
import type { Answer, Manners } from '../relay.ts'
import type { World } from '../world.ts'

/** Misbehaves at one in so many. */
const oneIn = (often: number, misbehave: Manners): Manners => {
  let nth = 0
  return (step, line) => (nth++ % often === 0 ? misbehave(step, line) : undefined)
}

/** A relay with bad manners while mail is accepted; polite again at the end. */
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
    return { ...(await settle(world, load, { ended: performance.now() })), limit: 60, ...limits }
  },
})

/** Something in the way to the relay for some seconds. */
const inTheWay = (
  { id, words, seconds, limit }: { id: string; words: string; seconds: number; limit: number },
  strike: (world: World) => () => void,
): Fault => ({
  id,
  words: `${words} for ${seconds} s`,
  load: '600 in batches',
  async run(world, scale) {
    const team = await world.team()
    const mend = strike(world)
    const load = await sendBatches(world, team, 600 * scale)
    await sleep(seconds * 1_000)
    mend()
    const account = await settle(world, load, { ended: performance.now() })
    return { ...account, over: account.over + (await bounced(world, team.id)), limit }
  },
})

/** Messages that were given up for what was not their fault. */
async function bounced({ sql }: World, teamId: string): Promise<number> {
  const [row] = await sql<{ count: string }>(
    `select count(*) as count from emails where team_id = $1 and status = 'bounced'`,
    [teamId],
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
  rude({ id: 'C/421', words: 'one answer in seven puts off (421, 450, 451, 452)' }, () => {
    const codes = ['450 4.2.1 later', '451 4.3.0 later', '452 4.3.1 later', '421 4.7.0 later']
    let nth = 0
    return oneIn(7, (step) => (step === 'rcpt' || step === 'dot' ? codes[nth++ % codes.length] : undefined))
  }),
  rude({ id: 'C/reset', words: 'one step in nine before the final dot is cut or reset' }, () => {
    let nth = 0
    return oneIn(9, (step) => (step === 'dot' ? undefined : nth++ % 2 === 0 ? 'drop' : 'reset'))
  }),
  rude({ id: 'C/lost', words: 'one answer in fifty to the final dot is cut: unknown, not sent again' }, () =>
    oneIn(50, (step) => (step === 'dot' ? 'reset' : undefined)),
  ),
  rude({ id: 'C/nul', words: 'one answer in seven holds NULs and half characters' }, () =>
    oneIn(7, (step) => (step === 'dot' ? '451 4.3.0 \0\ufffd later' : undefined)),
  ),
  rude({ id: 'F/dot', words: 'one final dot in a hundred is answered after 40 s', count: 200 }, () =>
    oneIn(100, async (step) => {
      if (step === 'dot') await sleep(40_000)
      return undefined
    }),
  ),
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
  inTheWay({ id: 'F/down', words: 'a relay that is down', seconds: 60, limit: 35 }, ({ toRelay }) => {
    toRelay.weather('refuse')
    toRelay.cut()
    return () => toRelay.weather('calm')
  }),
  inTheWay(
    { id: 'F/setup', words: 'a relay that refuses our set-up (554 5.7.1)', seconds: 60, limit: 60 },
    refusing('554 5.7.1 relay access denied'),
  ),
  inTheWay(
    { id: 'F/slow', words: 'a relay that asks to slow down (421 at MAIL)', seconds: 20, limit: 120 },
    refusing('421 4.7.0 too fast'),
  ),
]
