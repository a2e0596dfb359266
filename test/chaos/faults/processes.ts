/** Processes that are killed, frozen and stopped. */
import { setTimeout as sleep } from 'node:timers/promises'
import { inFlight, settle } from '../account.ts'
import { type Fault, inTurn, isPatient, meanwhile } from '../fault.ts'
import { type Load, send } from '../load.ts'
import { slowCommits } from '../slow-commits.ts'
import { type World, within } from '../world.ts'

/** Counts the rows unknown to every client. A repeated send must return the row whose response was lost. */
async function unknownRows({ sql }: World, teamId: string, { accepted }: Load): Promise<number> {
  const ids = [...accepted.values()]
  const [row] = await sql<{ count: string }>(
    'select count(*) as count from emails where team_id = $1 and not id = any($2)',
    [teamId, ids],
  )
  return Number(row?.count)
}

/** Counts the copies started after the thaw whose message another worker had started in the meantime. */
function begunOnLostClaims({ relay }: World, { accepted }: Load, thawed: number): number {
  const copies = [...accepted.values()].flatMap((id) => {
    const all = relay.copies.get(id) ?? []
    return all.slice(1).filter(({ began, by }) => began >= thawed && all[0]?.by !== by)
  })
  return copies.length
}

export const processFaults: readonly Fault[] = [
  {
    id: 'A1',
    words: 'kill -9 of a worker every 3 s',
    load: '1,500 singles',
    async run(world, scale) {
      const teams = [await world.team(), await world.team()]
      const work = send(world, teams, 1_500 * scale)
      const { result: load, strikes } = await meanwhile(work, 3_000, (nth) =>
        inTurn(world.workers, nth).signal('SIGKILL'),
      )
      inTurn(world.workers, strikes).signal('SIGKILL')
      return { ...(await settle(world, load)), allowed: inFlight(strikes + 1), limit: 30 }
    },
  },
  {
    id: 'A3',
    words: 'kill -9 of an API process whenever both are up, while commits take 0.2 s',
    load: '150 singles, 16 clients',
    async run(world, scale) {
      const team = await world.team()
      const repair = await slowCommits(world, 0.2)
      const work = send(world, [team], 150 * scale, { connections: 16 })
      const { result: load } = await meanwhile(work, 700, (nth) => {
        // One process always stays up, even if the other starts slowly.
        if (world.apis.every((api) => api.isUp())) inTurn(world.apis, nth).signal('SIGKILL')
      })
      await repair()
      const account = await settle(world, load)
      return { ...account, over: account.over + (await unknownRows(world, team.id, load)), limit: 30 }
    },
  },
  {
    id: 'A6',
    words: 'kill -9 of a worker while the relay’s responses are pending',
    load: '5 singles',
    async run(world) {
      const team = await world.team()
      const asked = new Set<string>()
      world.relay.manners((step, id) => {
        if (step !== 'dot' || asked.has(id)) return undefined
        asked.add(id)
        return 'hang'
      })
      const [holder, other] = [inTurn(world.workers, 0), inTurn(world.workers, 1)]
      other.signal('SIGSTOP')
      const load = await send(world, [team], 5)
      const ids = [...load.accepted.values()]
      await within(30, () => ids.every((id) => asked.has(id)))
      other.signal('SIGCONT')
      await sleep(2_000)
      holder.signal('SIGKILL')
      const ended = performance.now()
      const copies = (id: string) => world.relay.copies.get(id)?.length ?? 0
      const taken = await within(60, () => ids.every((id) => copies(id) > 1))
      const recovered = taken ? (performance.now() - ended) / 1_000 : null
      return { ...(await settle(world, load, { ended })), recovered, limit: 15 }
    },
  },
  {
    id: 'A8',
    words: 'SIGTERM to each process in turn, every 2 s',
    load: '1,000 singles, latency 50 ms',
    async run(world, scale) {
      const team = await world.team()
      world.relay.manners(async (step) => void (step === 'dot' && (await sleep(50))))
      const work = send(world, [team], 1_000 * scale)
      const { result: load } = await meanwhile(work, 2_000, (nth) => {
        const kind = inTurn([world.workers, world.apis], nth)
        // One process always stays up, even if the other starts slowly.
        if (kind.every((member) => member.isUp())) inTurn(kind, nth >> 1).signal('SIGTERM')
      })
      return { ...(await settle(world, load)), limit: 60 }
    },
  },
  ...[13, 30, 300].map(
    (seconds): Fault => ({
      id: `B8/${seconds}`,
      words: `a worker frozen for ${seconds} s`,
      patient: isPatient(seconds),
      load: '400 singles, latency 100 ms',
      async run(world, scale) {
        const team = await world.team()
        world.relay.manners(async (step) => void (step === 'dot' && (await sleep(100))))
        const work = send(world, [team], 400 * scale)
        await sleep(1_000)
        const frozen = inTurn(world.workers, 0)
        frozen.signal('SIGSTOP')
        await sleep(seconds * 1_000)
        const thawed = Date.now()
        frozen.signal('SIGCONT')
        const load = await work
        const account = await settle(world, load)
        const late = begunOnLostClaims(world, load, thawed)
        return { ...account, over: account.over + late, allowed: inFlight(1), limit: 30 }
      },
    }),
  ),
  {
    id: 'F/slow',
    words: 'kill -9 of a worker that sends slow emails',
    load: '300 singles, one in ten takes 6 s',
    async run(world, scale) {
      const team = await world.team()
      let nth = 0
      world.relay.manners(async (step) => {
        if (step === 'dot' && nth++ % 10 === 0) await sleep(6_000)
        return undefined
      })
      const work = send(world, [team], 300 * scale)
      await sleep(4_000)
      for (const worker of world.workers) worker.signal('SIGKILL')
      const load = await work
      return { ...(await settle(world, load)), allowed: 4, limit: 60 }
    },
  },
]
