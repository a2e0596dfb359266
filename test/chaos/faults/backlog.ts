/** Large backlogs: a backlog, a flood next to single emails, and a short form of an hour. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { percentile, slope } from '../../bench/figures.ts'
import { startWhatsappSandbox } from '../../sandbox/whatsapp.ts'
import { anEmail, type TestTeam } from '../../support/service.ts'
import { aMessage, aTemplate, numbers } from '../../support/whatsapp.ts'
import { counted, settle } from '../account.ts'
import { emptyQueue, fillQueue } from '../backlog.ts'
import type { Fault } from '../fault.ts'
import { attempt, type Load, send } from '../load.ts'
import { descriptors, largest } from '../measure.ts'
import { type Member, type Start, type World, within } from '../world.ts'

const PRELOAD = join(import.meta.dirname, '../preload/heap.ts')
const WATCHED: Start = { argv: ['--expose-gc', '--import', PRELOAD] }

/** Measures how many messages are sent per second during this time. */
async function rateOf(taken: () => number, seconds: number): Promise<number> {
  const [before, began] = [taken(), performance.now()]
  await sleep(seconds * 1_000)
  return ((taken() - before) * 1_000) / (performance.now() - began)
}

/** A single message sent next to a flood, and when it was sent. */
type Single = { send(): Promise<string>; handedOver(id: string): number | null }

/**
 * Sends a hundred messages, one after another. Measures the p99 of the time from acceptance to sending, in
 * seconds.
 */
async function waitOf({ send: one, handedOver }: Single): Promise<{ p99: number; never: number }> {
  const waits: number[] = []
  let never = 0
  for (let nth = 0; nth < 100; nth++) {
    const id = await one()
    const accepted = Date.now()
    if (await within(30, () => handedOver(id) !== null))
      waits.push(Math.max(0, (handedOver(id) ?? 0) - accepted) / 1_000)
    else never += 1
  }
  return { p99: percentile(waits, 0.99), never }
}

/** Workers get faster and the queue shorter over time, so both variants run equally often early and late. */
const TURNS = ['line', 'alike', 'alike', 'line', 'line', 'alike', 'alike', 'line'] as const

/**
 * Measures the rate with the current queue positions, and with equal priorities. Both are rewritten before
 * the measurement.
 */
async function priceOfFairness({ sql }: World, queue: string, taken: () => number) {
  await sql('create table places as select id, priority from pgboss.job where name = $1', [queue])
  const rates = { line: 0, alike: 0 }
  for (const turn of TURNS) {
    await sql(
      `update pgboss.job j set priority = case when $2 then p.priority else 0 end from places p
        where j.name = $1 and j.id = p.id and j.state < 'active'`,
      [queue, turn === 'line'],
    )
    await sleep(1_000)
    rates[turn] += ((await rateOf(taken, 5)) * 2) / TURNS.length
  }
  return { fair: rates.line, plain: rates.alike }
}

const verdict = (
  { p99, never }: { p99: number; never: number },
  { fair, plain }: { fair: number; plain: number },
) => {
  const slow = fair < 0.95 * plain ? 1 : 0
  const late = p99 > 3 ? 1 : 0
  const note = `p99 ${p99.toFixed(2)} s; ${fair.toFixed(0)}/s with the fair queue, ${plain.toFixed(0)}/s without`
  return counted(100, slow + late + never, note)
}

const emailFairness: Fault = {
  id: 'F/fair-email',
  words:
    'a flood of one team: another’s emails are sent within 3 s (p99), and the fair queue keeps 95 % of the rate',
  load: '50,000 queued, and 100 singles',
  world: { workers: [] },
  async run(world, scale) {
    const [flood, other] = [await world.team(), await world.team()]
    await fillQueue(world, flood, 50_000 * scale, 'now')
    world.workers.push(await world.start('workers/main.ts'), await world.start('workers/main.ts'))
    const { copies } = world.relay
    await within(30, () => copies.size > 100)
    const wait = await waitOf({
      send: async () => (await attempt(world, other, anEmail())).body.id,
      handedOver: (id) => copies.get(id)?.[0]?.at ?? null,
    })
    const price = await priceOfFairness(world, 'deliver-email', () => copies.size)
    await emptyQueue(world, flood)
    return verdict(wait, price)
  },
}

/** Sends a number of WhatsApp messages through the API, in batches. */
async function floodNumbers(world: World, team: TestTeam, template: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 5_000) {
    const messages = Array.from({ length: Math.ceil(Math.min(5_000, count - from) / 50) }, (_, item) =>
      aMessage(template, { to: numbers(50, from + item * 50) }),
    )
    await attempt(world, team, { messages }, '/v1/whatsapp/messages/batch')
  }
}

const whatsappFairness: Fault = {
  id: 'F/fair-whatsapp',
  words: 'the same with WhatsApp messages',
  load: '50,000 queued, and 100 singles',
  world: { workers: [] },
  async run(world, scale) {
    const limits = { whatsapp_limit: 1_000_000 }
    const [flood, other] = [await world.team(limits), await world.team(limits)]
    const at = new Map<string, number>()
    const cloud = await startWhatsappSandbox({
      port: 0,
      script: {
        onMessage({ body }) {
          at.set(String(body.biz_opaque_callback_data).split(':')[1] ?? '', Date.now())
          return undefined
        },
      },
    })
    try {
      const template = (await world.whatsappTemplate(flood, aTemplate())).id
      const own = (await world.whatsappTemplate(other, aTemplate())).id
      await floodNumbers(world, flood, template, 50_000 * scale)
      const env = {
        WHATSAPP_API_URL: cloud.url,
        WHATSAPP_ACCESS_TOKEN: 'EAA-token-of-the-chaos',
        WHATSAPP_PHONE_NUMBER_ID: '100000000000002',
        WHATSAPP_MESSAGES_PER_SECOND: '1000',
      }
      world.workers.push(
        await world.start('workers/main.ts', { env }),
        await world.start('workers/main.ts', { env }),
      )
      await within(30, () => at.size > 100)
      const wait = await waitOf({
        send: async () => {
          const { body } = await attempt(world, other, aMessage(own), '/v1/whatsapp/messages')
          return body.data[0].id
        },
        handedOver: (id) => at.get(id) ?? null,
      })
      const price = await priceOfFairness(world, 'deliver-whatsapp', () => at.size)
      await emptyQueue(world, flood)
      return verdict(wait, price)
    } finally {
      await Promise.all(world.workers.map((worker) => worker.stop('SIGKILL')))
      await cloud.close()
    }
  },
}

/**
 * Sends single emails next to a backlog. All must be sent, the API must stay fast, and the workers' memory
 * small.
 */
const backlog = (id: string, due: 'now' | 'in an hour', words: string): Fault => ({
  id,
  words: `a backlog of 200,000 ${words} emails`,
  load: '600 singles of another team',
  world: { workers: [] },
  async run(world, scale) {
    const [flood, other] = [await world.team(), await world.team()]
    await fillQueue(world, flood, 200_000 * scale, due)
    world.workers.push(await world.start('workers/main.ts'), await world.start('workers/main.ts'))
    const { copies } = world.relay
    if (due === 'now') await within(30, () => copies.size > 100)
    const rate = due === 'now' ? `${(await rateOf(() => copies.size, 15)).toFixed(0)} emails/s, ` : ''
    const began = performance.now()
    const load = await send(world, [other], 600 * scale)
    const calls = (performance.now() - began) / 600 / scale
    const account = await settle(world, load, { seconds: 30 })
    const mb = await largest(world.workers)
    await emptyQueue(world, flood)
    const note = `${rate}${calls.toFixed(1)} ms per call, workers ${mb} MB`
    return { ...account, over: account.over + (mb > 200 ? 1 : 0), note, limit: 5 }
  },
})

type Sample = { x: number; heaps: number[]; files: number[]; connections: number }

async function sample(world: World, members: readonly Member[]): Promise<Sample> {
  const heaps = []
  for (const member of members) heaps.push((await member.ask<number>('heap')) / 1024 ** 2)
  const [row] = await world.sql<{ count: string }>(
    'select count(*) as count from pg_stat_activity where datname = current_database()',
  )
  return {
    x: performance.now() / 60_000,
    heaps,
    files: await Promise.all(members.map(descriptors)),
    connections: Number(row?.count),
  }
}

/** Heap growth that counts as a leak, in MB per minute. */
const LEAK = 1

const leaks: Fault = {
  id: 'A9',
  words: 'six minutes at up to 50 emails per second: no leaks',
  load: '18,000 singles',
  world: { apis: [WATCHED, WATCHED], workers: [WATCHED, WATCHED] },
  async run(world, scale) {
    const team = await world.team()
    const members = [...world.apis, ...world.workers]
    const minutes = 6 * scale
    const end = performance.now() + minutes * 60_000
    const load: Load = { accepted: new Map(), wrong: [] }
    let over = false
    const sampling = (async () => {
      const samples: Sample[] = []
      // Memory allocated in the first third doesn't count as a leak.
      await sleep(minutes * 20_000)
      while (!over) {
        samples.push(await sample(world, members))
        await sleep(5_000)
      }
      return samples
    })()
    while (performance.now() < end) {
      const began = performance.now()
      const sent = await send(world, [team], 50)
      for (const [key, id] of sent.accepted) load.accepted.set(key, id)
      await sleep(Math.max(0, 1_000 - (performance.now() - began)))
    }
    over = true
    const samples = await sampling
    const account = await settle(world, load)
    const slopes = members.map((_, at) => slope(samples.map(({ x, heaps }) => ({ x, y: heaps[at] ?? 0 }))))
    const [first, last] = [samples.at(1), samples.at(-1)]
    const files = Math.max(...members.map((_, at) => (last?.files[at] ?? 0) - (first?.files[at] ?? 0)))
    const connections = (last?.connections ?? 0) - (first?.connections ?? 0)
    const leaking =
      slopes.filter((each) => each > LEAK).length + (files > 10 ? 1 : 0) + (connections > 5 ? 1 : 0)
    const note = `heaps grow by ${slopes.map((each) => each.toFixed(2)).join(', ')} MB/min, descriptors by ${files}, connections by ${connections}`
    return { ...account, over: account.over + leaking, note, limit: 10 }
  },
}

export const backlogFaults: readonly Fault[] = [
  backlog('A10/ready', 'now', 'due'),
  backlog('A10/off', 'in an hour', 'deferred'),
  leaks,
  emailFairness,
  whatsappFairness,
]
