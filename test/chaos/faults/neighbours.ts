/** Clients that use more than their share, and the effect on others. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { percentile } from '../../bench/figures.ts'
import { anEmail, type TestTeam } from '../../support/service.ts'
import { counted } from '../account.ts'
import { type Fault, inTurn } from '../fault.ts'
import { attempt } from '../load.ts'
import { descriptors, resident } from '../measure.ts'
import { type World, within } from '../world.ts'

type Calls = { took: number[]; wrong: number }

/** Four clients make calls one after another, for this long. */
async function calls(world: World, team: TestTeam, seconds: number): Promise<Calls> {
  const found: Calls = { took: [], wrong: 0 }
  const end = performance.now() + seconds * 1_000
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const began = performance.now()
      const { status } = await attempt(world, team, anEmail())
      found.took.push(performance.now() - began)
      if (status !== 201) found.wrong += 1
      await sleep(20)
    }
  }
  await Promise.all([client(), client(), client(), client()])
  return found
}

/** Compares a team's p99 while another team strains the API with its p99 before. */
const beside = (
  { id, words, load }: { id: string; words: string; load: string },
  strain: (world: World, team: TestTeam, over: () => boolean) => Promise<unknown>,
): Fault => ({
  id,
  words: `${words}: no errors for other teams, p99 at most fivefold`,
  load,
  async run(world) {
    const [loud, other] = [await world.team(), await world.team()]
    // Deliveries for the busy team would compete for the few cores, and aren't measured here.
    for (const worker of world.workers) worker.signal('SIGSTOP')
    await calls(world, other, 2)
    const quiet = percentile((await calls(world, other, 6)).took, 0.99)
    let over = false
    const straining = strain(world, loud, () => over)
    await sleep(500)
    const { took, wrong } = await calls(world, other, 10)
    over = true
    await straining
    const strained = percentile(took, 0.99)
    const note = `${quiet.toFixed(0)} → ${strained.toFixed(0)} ms`
    // Up to a tenth of a second passes in any case.
    return counted(took.length - wrong, wrong + (strained > Math.max(100, 5 * quiet) ? 1 : 0), note)
  },
})

const many = (count: number, one: (nth: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, (_, nth) => one(nth)))

/** Gives a team contacts, with one statement. */
const fillContacts = ({ sql }: World, { id }: TestTeam, count: number) =>
  sql(
    `insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
      select $1, gen_random_uuid(), 'person' || n || '@example.org', 'person' || n || '@example.org', 'subscribed',
        '{}', '{}', now(), now() from generate_series(1, $2::int) n`,
    [id, count],
  )

async function get({ apis }: World, { key }: TestTeam, nth: number, path: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` }
  const signal = AbortSignal.timeout(30_000)
  await fetch(inTurn(apis, nth).base() + path, { headers, signal })
    .then((response) => response.text())
    .catch(() => '')
}

/** Locks the rows of these contacts. @returns a function that unlocks them. */
async function lockRows(world: World, { id }: TestTeam, count: number): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: world.url })
  await client.connect()
  await client.query('begin')
  await client.query('select 1 from contacts where team_id = $1 order by email limit $2 for update', [
    id,
    count,
  ])
  return () => client.end()
}

/** Opens a connection to an API and sends something, or nothing. */
function speak(base: string, words: string | Buffer): Socket {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  if (words.length > 0) socket.write(words)
  return socket
}

const upload = (key: string, body: string, length: number, path = '/v1/emails'): string =>
  `POST ${path} HTTP/1.1\r\nHost: chaos.test\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`

export const neighbourFaults: readonly Fault[] = [
  {
    id: 'F/uploads',
    words: 'aborted, stalled and malformed uploads, and silent clients: all resources are freed in 90 s',
    load: '300 uploads, 1,000 silent clients',
    async run(world) {
      const team = await world.team()
      await calls(world, team, 3)
      const weigh = async () => ({
        open: await Promise.all(world.apis.map(descriptors)),
        mb: await Promise.all(world.apis.map(resident)),
      })
      const before = await weigh()
      const body = JSON.stringify(anEmail({ html: 'x'.repeat(900_000) }))
      const sockets = Array.from({ length: 300 }, (_, nth) => {
        const words = [
          upload(team.key, body.slice(0, 500_000), body.length),
          upload(team.key, '{"from": ', body.length),
          upload(team.key, '}'.repeat(1_000), 1_000),
        ]
        return speak(inTurn(world.apis, nth).base(), inTurn(words, nth))
      })
      const silent = Array.from({ length: 1_000 }, (_, nth) => speak(inTurn(world.apis, nth).base(), ''))
      await sleep(3_000)
      for (const socket of sockets.filter((_, nth) => nth % 3 === 0)) socket.destroy()
      const { took, wrong } = await calls(world, team, 5)
      const ended = performance.now()
      // Stalled and silent clients stay connected, so the server must close them itself.
      const back = await within(90, async () => {
        const { open } = await weigh()
        return open.every((count, at) => count <= (before.open[at] ?? 0) + 20)
      })
      const recovered = back ? (performance.now() - ended) / 1_000 : null
      const after = await weigh()
      for (const socket of [...sockets, ...silent]) socket.destroy()
      const grown = Math.max(...after.mb.map((mb, at) => mb - (before.mb[at] ?? 0)))
      const note = `${Math.max(...after.open)} descriptors, ${grown.toFixed(0)} MB more`
      return { ...counted(took.length - wrong, wrong + (grown > 150 ? 1 : 0), note), recovered, limit: 90 }
    },
  },
  beside(
    { id: 'F/searches', words: 'slow searches by one team', load: '100 at once in 100,000 contacts' },
    async (world, team, over) => {
      await fillContacts(world, team, 100_000)
      await many(100, async (nth) => {
        while (!over()) await get(world, team, nth, '/v1/contacts?email=nobody%40nowhere&cursor=50000')
      })
    },
  ),
  beside(
    { id: 'F/bodies', words: 'bodies of 9 MiB from one team', load: '40 at once' },
    async (world, team, over) => {
      const emails = Array.from({ length: 9 }, () => anEmail({ html: 'x'.repeat(1024 * 1024) }))
      const body = JSON.stringify({ emails })
      const words = Buffer.from(upload(team.key, body, body.length, '/v1/emails/batch'))
      while (!over()) {
        // One write per socket, so that the load is on the service and not on this process.
        const sockets = Array.from({ length: 40 }, (_, nth) => speak(inTurn(world.apis, nth).base(), words))
        await Promise.all(sockets.map((socket) => once(socket, 'data').catch(() => {})))
        for (const socket of sockets) socket.destroy()
      }
    },
  ),
  beside(
    { id: 'F/rows', words: 'calls of one team for locked rows', load: '100 at once' },
    async (world, team, over) => {
      await fillContacts(world, team, 100)
      const letGo = await lockRows(world, team, 100)
      await many(100, async (nth) => {
        while (!over()) {
          const path = `${inTurn(world.apis, nth).base()}/v1/contacts/person${nth}@example.org`
          await fetch(path, {
            method: 'PATCH',
            headers: { Authorization: `Bearer ${team.key}`, 'Content-Type': 'application/json' },
            body: JSON.stringify({ properties: { a: 'b' } }),
            signal: AbortSignal.timeout(30_000),
          })
            .then((response) => response.text())
            .catch(() => '')
        }
      })
      await letGo()
    },
  ),
]
