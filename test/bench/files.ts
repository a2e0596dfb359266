/**
 * Row 22: the rate of emails with files compared with bare nodemailer, a worker's memory while many large
 * emails are waiting, and the latency of emails without files in the meantime.
 */
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { anEmail, type TestTeam } from '../support/service.ts'
import { singles } from './broadcasts.ts'
import { atMost, type Figure, median, percentile, upTo } from './figures.ts'
import { asTeam, client } from './load.ts'
import { type RelayProcess as Relay, startRelayProcess } from './relay-process.ts'
import type { Place, Rig } from './rig.ts'

/** Encodes to 1 MB. */
const BYTES = 730_000
const MAILS = upTo(200)
/** The number of waiting emails, and the size of each one's file, which encodes to 20 MB. */
const WAITING = upTo(50)
const LARGE = 14_600_000

async function upload(base: string, { key }: TestTeam, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reply = await fetch(`${base}/v1/attachments?filename=a.bin`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}` },
    body: bytes,
  })
  if (reply.status !== 201) throw new Error(`an upload was answered ${reply.status}`)
  return ((await reply.json()) as { id: string }).id
}

/**
 * Uploads a different file for each email. @returns a function that sends the emails and waits for the last
 * one.
 */
async function prepare(
  { base, team, relay }: { base: string; team: TestTeam; relay: Relay },
  count: number,
  size: number,
): Promise<() => Promise<void>> {
  const emails: Record<string, unknown>[] = []
  while (emails.length < count) {
    const attachment_id = await upload(base, team, randomBytes(size))
    emails.push(anEmail({ attachments: [{ attachment_id }] }))
  }
  return async () => {
    // Other emails are also in progress.
    const taken = () => relay.taken.filter(({ bytes }) => bytes > size).length
    const before = taken()
    const { post } = client(base, 1)
    for (let at = 0; at < count; at += 100)
      await post('/v1/emails/batch', JSON.stringify({ emails: emails.slice(at, at + 100) }), asTeam(team))
    while (taken() < before + count) await sleep(20)
  }
}

/** Returns when a relay accepted emails, by their ids. */
const arrivalsAt = ({ taken }: Relay) => {
  const at = (id: string) => taken.find((each) => each.id === id)?.at
  return { get: at, has: (id: string) => at(id) !== undefined }
}

/** Measures the latency of emails without files in milliseconds, with and without large emails, in turns. */
async function compare(
  { database }: Place,
  { base, team, relay }: { base: string; team: TestTeam; relay: Relay },
  sendLarge: () => Promise<void>,
): Promise<{ calm: number[]; busy: number[] }> {
  const found: { calm: number[]; busy: number[] } = { calm: [], busy: [] }
  const send = async (seconds: number) =>
    (await singles({ base }, team, arrivalsAt(relay), { rate: 20, seconds })).waits
  await send(2)
  for (let turn = 0; turn < upTo(3); turn++) {
    // Earlier writes must not affect a measurement.
    await database.query(sql.unsafe`checkpoint`)
    found.calm.push(...(await send(upTo(10))))
    let isOver = false
    const large = sendLarge().then(() => {
      isOver = true
    })
    while (!isOver) found.busy.push(...(await send(1)))
    await large
  }
  return found
}

/** Runs some work in a separate place, with a relay that discards accepted messages. */
async function inPlace<T>(rig: Rig, work: (place: Place, relay: Relay) => Promise<T>): Promise<T> {
  const relay = await startRelayProcess()
  const place = await rig.place()
  try {
    return await work(place, relay)
  } finally {
    await place.close()
    await relay.stop()
  }
}

/** Row 22. */
export const measureFiles = (rig: Rig): Promise<Figure[]> =>
  inPlace(rig, async (place, relay) => {
    const [team, other] = await place.teams(2)
    if (!team || !other) throw new Error('there must be two teams')
    const { base } = await place.api()
    const worker = await place.worker({ SMTP_URL: relay.url })
    const to = { base, team, relay }
    await (await prepare(to, upTo(20), BYTES))()
    const sendAll = await prepare(to, MAILS, BYTES)
    const before = await worker.cpu()
    await sendAll()
    const ours = (((await worker.cpu()) - before) * 1_000) / MAILS
    const arguments_ = [new URL(relay.url).port, String(MAILS), String(BYTES)]
    const bare = fork(join(import.meta.dirname, 'bare-mailer.ts'), arguments_)
    const [reference] = (await once(bare, 'message')) as [number]
    const sendLarge = await prepare(to, WAITING, LARGE)
    const { calm, busy } = await compare(place, { base, team: other, relay }, sendLarge)
    return [
      atMost(1.5, {
        row: '22a',
        measure: 'CPU time of a worker per email of 1 MB, with DKIM',
        ...{ ours, reference, unit: 'ms' },
        note: 'reference: bare nodemailer, pooled, unsigned, one file from memory; ours reads one per email from the database',
      }),
      atMost(1, {
        row: '22b',
        measure: `memory of the worker, ${WAITING} emails of 20 MB`,
        ...{ ours: await worker.peak(), reference: 512, unit: 'MB' },
      }),
      atMost(1.5, {
        row: '22c',
        measure: 'p99 from 201 until sent, emails without files next to those of row 22b',
        ...{ ours: percentile(busy, 0.99), reference: percentile(calm, 0.99), unit: 'ms' },
        note: `reference: the same without them, alternating; medians ${Math.round(median(busy))} and ${Math.round(median(calm))} ms`,
      }),
    ]
  })
