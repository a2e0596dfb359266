/** A database that crashes, hangs, becomes unavailable or rejects connections. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { anEmail } from '../../support/service.ts'
import { parentOf, processesOf } from '../../support/standby.ts'
import { inFlight, settle } from '../account.ts'
import { type Fault, inTurn, isPatient, meanwhile } from '../fault.ts'
import { attempt, send } from '../load.ts'
import type { World } from '../world.ts'

const OTHERS = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

/** Kills one backend, as the kernel would. The server then ends all others and recovers from its log. */
export async function crash({ sql }: World): Promise<void> {
  const [backend] = await sql<{ pid: number }>(
    `select pid ${OTHERS} and backend_type = 'client backend' limit 1`,
  )
  if (backend) process.kill(backend.pid, 'SIGKILL')
}

/** Stops all processes of the server, like a hanging machine. @returns a function that continues them. */
async function freezeServer({ sql }: World): Promise<() => unknown> {
  const [own] = await sql<{ pid: number }>('select pg_backend_pid() as pid')
  const server = await processesOf(await parentOf(own?.pid ?? 0))
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of server) process.kill(pid, name)
  }
  signal('SIGSTOP')
  return () => signal('SIGCONT')
}

const terminateAll = ({ sql }: World) => sql(`select pg_terminate_backend(pid) ${OTHERS}`).catch(() => {})

/** Defines a fault that lasts for some seconds while email is accepted and sent. */
const lasting = (
  {
    id,
    words,
    seconds,
    own_server = false,
  }: { id: string; words: string; seconds: number; own_server?: boolean },
  strike: (world: World) => Promise<() => unknown>,
): Fault => ({
  id,
  words: `${words} for ${seconds} s`,
  load: '600 singles, latency 20 ms',
  own_server,
  patient: isPatient(seconds),
  async run(world, scale) {
    const team = await world.team()
    world.relay.manners(async (step) => void (step === 'dot' && (await sleep(20))))
    const work = send(world, [team], 600 * scale)
    await sleep(1_000)
    const repair = await strike(world)
    await sleep(Math.max(2, seconds * Math.min(1, scale)) * 1_000)
    await repair()
    const ended = performance.now()
    const load = await work
    return { ...(await settle(world, load, { ended })), limit: 60 }
  },
})

/** Opens all remaining connections and terminates the service's own, so that it can't reconnect. */
async function exhaust(world: World): Promise<() => Promise<unknown>> {
  const taken: Client[] = []
  let over = false
  const take = async (): Promise<void> => {
    while (!over) {
      const client = new Client({ connectionString: world.url, application_name: 'chaos' })
      client.on('error', () => {})
      const connected = await client.connect().then(
        () => true,
        () => false,
      )
      if (connected) taken.push(client)
      else await sleep(20)
    }
  }
  const taking = [take(), take(), take()]
  await sleep(300)
  await world
    .sql(`select pg_terminate_backend(pid) ${OTHERS} and application_name <> 'chaos'`)
    .catch(() => {})
  return async () => {
    over = true
    await Promise.all(taking)
    await Promise.all(taken.map((client) => client.end().catch(() => {})))
  }
}

async function readOnly(world: World): Promise<() => Promise<unknown>> {
  const [{ name } = { name: '' }] = await world.sql<{ name: string }>('select current_database() as name')
  await world.sql(`alter database "${name}" set default_transaction_read_only = on`)
  await terminateAll(world)
  return async () => {
    await world.sql(`set default_transaction_read_only = off`)
    await world.sql(`alter database "${name}" reset default_transaction_read_only`)
    await terminateAll(world)
  }
}

async function lockTable(world: World, table: string): Promise<() => Promise<unknown>> {
  const client = new Client({ connectionString: world.url })
  await client.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  return () => client.end()
}

export const databaseFaults: readonly Fault[] = [
  {
    id: 'A2',
    words: 'a crash of the database every 8 s, and kill -9 of a worker every 3 s',
    load: '1,000 singles',
    own_server: true,
    async run(world, scale) {
      const team = await world.team()
      const work = send(world, [team], 1_000 * scale)
      let kills = 0
      const { result: load } = await meanwhile(work, 1_000, async (nth) => {
        if (nth % 8 === 7) await crash(world).catch(() => {})
        if (nth % 3 !== 2) return
        inTurn(world.workers, kills++).signal('SIGKILL')
      })
      await crash(world)
      return { ...(await settle(world, load)), allowed: inFlight(kills + 2), limit: 60 }
    },
  },
  {
    id: 'A11/hang',
    words: 'a database that hangs for 20 s: all clients get 503',
    load: '300 singles',
    async run(world, scale) {
      const team = await world.team()
      const work = send(world, [team], 300 * scale)
      await sleep(500)
      world.toDatabase.weather('freeze')
      const frozen = performance.now()
      const answers = await Promise.all(
        [1, 2, 3, 4].map(() => attempt(world, team, anEmail({ subject: 'while it hangs' }))),
      )
      const patience = (performance.now() - frozen) / 1_000
      await sleep(Math.max(0, 20_000 - patience * 1_000))
      world.toDatabase.weather('calm')
      const ended = performance.now()
      const load = await work
      const account = await settle(world, load, { ended })
      const wrong = answers.filter(({ status }) => status !== 503).length
      const note = `after ${patience.toFixed(1)} s`
      return { ...account, over: account.over + wrong, note, limit: 60 }
    },
  },
  lasting(
    { id: 'A11/cut', words: 'database connections terminated every 200 ms', seconds: 10 },
    async (world) => {
      const timer = setInterval(() => void terminateAll(world), 200)
      return () => clearInterval(timer)
    },
  ),
  lasting({ id: 'A11/full', words: 'max_connections exhausted', seconds: 8, own_server: true }, exhaust),
  lasting({ id: 'A11/readonly', words: 'a database that is read only', seconds: 8 }, readOnly),
  lasting(
    { id: 'A11/stop', words: 'SIGSTOP to all database processes', seconds: 20, own_server: true },
    freezeServer,
  ),
  ...[41, 300].map((seconds) =>
    lasting({ id: `F/away${seconds}`, words: 'an unavailable database', seconds }, async ({ toDatabase }) => {
      toDatabase.weather('refuse')
      toDatabase.cut()
      return () => toDatabase.weather('calm')
    }),
  ),
  ...[30, 120].flatMap((seconds) => [
    lasting({ id: `F/lock${seconds}`, words: 'LOCK TABLE emails', seconds }, (world) =>
      lockTable(world, 'emails'),
    ),
    lasting({ id: `F/lockjobs${seconds}`, words: 'LOCK TABLE pgboss.job', seconds }, (world) =>
      lockTable(world, 'pgboss.job'),
    ),
  ]),
]
