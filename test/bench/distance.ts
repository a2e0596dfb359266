/**
 * Row 24: a database at a distance of 1 ms each way, compared with a local one. The additional time divided
 * by 2 ms is the number of sequential round trips. Row 24d is compared with six `select 1` and 4 ms.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { signedIn } from '../support/dashboard.ts'
import type { Service, TestTeam } from '../support/service.ts'
import { atLeast, atMost, type Figure, median, QUICK, seconds, upTo } from './figures.ts'
import { asTeam, client, mail, oneByOne, postBatches } from './load.ts'
import type { Place, Rig } from './rig.ts'
import { startSmtpSink } from './sinks.ts'

const AWAY_MS = 1
const RUNS = QUICK ? 1 : 3
const BYTES = 2_048
/** Of row 24d, in milliseconds: five sends a second. */
const REST_MS = 200

/** Forwards data in order, `AWAY_MS` later. */
function passLater(from: Socket, to: Socket): void {
  // Timers with the same delay end in the order of their start.
  const later = (pass: () => void): void => void setTimeout(pass, AWAY_MS)
  from.on('data', (chunk) => later(() => void to.write(chunk)))
  from.on('close', () => later(() => to.destroy()))
  from.on('error', () => to.destroy())
  from.setNoDelay(true)
}

/** Returns a database's URL through a proxy with a delay. */
export async function away(url: string): Promise<{ url: string; stop(): void }> {
  const { port, hostname } = new URL(url)
  const open = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) open.add(socket.once('close', () => open.delete(socket)))
    passLater(near, far)
    passLater(far, near)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String((proxy.address() as AddressInfo).port)
  const stop = (): void => {
    proxy.close()
    for (const socket of open) socket.destroy()
  }
  return { url: through.href, stop }
}

type Measured = { accept: number; delivery: number; page: number }

/**
 * Measures the latency of accepted sends and page views in milliseconds, and one worker's emails per second.
 */
async function measure(place: Place, team: TestTeam, url: string): Promise<Measured> {
  const sink = await startSmtpSink()
  const api = await place.api({ DATABASE_URL: url })
  await oneByOne(api.base, team, upTo(100))
  const accepts = await oneByOne(api.base, team, upTo(200))
  const sent = await client(api.base, 1).post('/v1/emails', JSON.stringify(mail(BYTES)), asTeam(team))
  const { id } = JSON.parse(sent) as { id: string }
  const service = { base: api.base, database: place.database, deps: { clock: () => new Date() } }
  const person = await signedIn(service as unknown as Service, { team: team.id, role: 'owner' })
  const pages: number[] = []
  for (let index = 0; index < upTo(60); index += 1)
    pages.push((await seconds(() => person.get(`/teams/${team.id}/emails/${id}`))) * 1_000)
  const worker = await place.worker({
    DATABASE_URL: url,
    SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true`,
  })
  const mails = upTo(2_000)
  const before = upTo(100) + upTo(200) + 1
  await sink.until(before)
  const took = await seconds(async () => {
    await postBatches(api.base, team, mails, BYTES)
    await sink.until(before + mails)
  })
  await Promise.all([api.stop(), worker.stop()])
  await sink.stop()
  return { accept: median(accepts), delivery: mails / took, page: median(pages) }
}

/** Returns the median of an action in milliseconds, five times a second. */
async function unhurried(action: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < upTo(100); index += 1) {
    await sleep(REST_MS)
    times.push((await seconds(action)) * 1_000)
  }
  return median(times)
}

async function measureUnhurried(place: Place, team: TestTeam, url: string): Promise<Figure> {
  const direct = new pg.Client({ connectionString: url })
  await direct.connect()
  const trip = await unhurried(() => direct.query({ name: 'one', text: 'select 1' }))
  await direct.end()
  const api = await place.api({ DATABASE_URL: url })
  const { post } = client(api.base, 1)
  const body = JSON.stringify(mail(BYTES))
  const ours = await unhurried(() => post('/v1/emails', body, asTeam(team)))
  await api.stop()
  return atMost(1, {
    row: '24d',
    measure: 'POST /v1/emails five times a second, distant database, p50',
    ...{ ours, reference: 6 * trip + 4, unit: 'ms' },
    note: 'reference: six round trips and 4 ms',
  })
}

/** Row 24, in turns. */
export async function measureDistance(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const far = await away(place.url)
  const turns: { near: Measured; away: Measured }[] = []
  let unhurriedSend: Figure
  try {
    for (let run = 0; run < RUNS; run += 1) {
      const [one, other] = await place.teams(2)
      if (!one || !other) throw new Error('there must be two teams')
      turns.push({ near: await measure(place, one, place.url), away: await measure(place, other, far.url) })
    }
    const [team] = await place.teams(1)
    if (!team) throw new Error('there must be a team')
    unhurriedSend = await measureUnhurried(place, team, far.url)
  } finally {
    await place.close()
    far.stop()
  }
  const of = (name: keyof Measured) => ({
    ours: median(turns.map((turn) => turn.away[name])),
    reference: median(turns.map((turn) => turn.near[name])),
  })
  const [accept, page] = [of('accept'), of('page')]
  const trips = ({ ours, reference }: typeof accept): string =>
    `reference: without the distance; ${((ours - reference) / (2 * AWAY_MS)).toFixed(1)} round trips`
  return [
    atMost(6, {
      row: '24a',
      measure: 'POST /v1/emails one after another, distant database',
      ...{ ...accept, unit: 'ms', note: trips(accept) },
    }),
    atLeast(0.7, {
      row: '24b',
      measure: 'emails by batch calls through one worker, distant database',
      ...{ ...of('delivery'), unit: 'emails/s', note: 'reference: without the distance' },
    }),
    atMost(6, {
      row: '24c',
      measure: 'an email’s page, distant database',
      ...{ ...page, unit: 'ms', note: trips(page) },
    }),
    unhurriedSend,
  ]
}
