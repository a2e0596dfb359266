/** Rows 5 to 9: emails and WhatsApp messages end to end, compared with Postfix and bare clients. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { createWhatsappTemplate } from '../../db/messages/whatsapp/save-template.ts'
import type { TestTeam } from '../support/service.ts'
import { aTemplate } from '../support/whatsapp.ts'
import { atLeast, atMost, type Figure, Missing, median, percentile, QUICK, seconds, upTo } from './figures.ts'
import { asTeam, client, mail, oneByOne, postBatches } from './load.ts'
import type { Place, Rig } from './rig.ts'
import { pour, type Sink, startHttp, startRelayingPostfix, startSlowSink, startSmtpSink } from './sinks.ts'

const MAILS = upTo(5_000)
const BYTES = 4_096
const RUNS = QUICK ? 1 : 3

const smtpUrl = ({ port }: Pick<Sink, 'port'>): string => `smtp://127.0.0.1:${port}?ignoreTLS=true`

export type Through = { rate: number; cpu_ms: number; api_memory: number; worker_memory: number }

/**
 * Measures emails per second from batch calls through one API and one worker to a sink, and the worker's CPU
 * time per email.
 */
export async function measureThrough(place: Place): Promise<Through> {
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  const sink = await startSmtpSink()
  const api = await place.api()
  const worker = await place.worker({ SMTP_URL: smtpUrl(sink) })
  await postBatches(api.base, team, 500, BYTES)
  await sink.until(500)
  const rates: number[] = []
  const costs: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const before = { taken: sink.taken(), cpu: await worker.cpu() }
    const took = await seconds(async () => {
      await postBatches(api.base, team, MAILS, BYTES)
      await sink.until(before.taken + MAILS)
    })
    rates.push(MAILS / took)
    costs.push((((await worker.cpu()) - before.cpu) * 1_000) / MAILS)
  }
  const through = {
    rate: median(rates),
    cpu_ms: median(costs),
    api_memory: await api.peak(),
    worker_memory: await worker.peak(),
  }
  await Promise.all([api.stop(), worker.stop()])
  await sink.stop()
  return through
}

async function postfixRate(signing: boolean): Promise<number> {
  const sink = await startSmtpSink()
  const postfix = await startRelayingPostfix(sink.port, { signing })
  const rates: number[] = []
  try {
    await pour(postfix.port, 200, BYTES)
    await sink.until(200)
    for (let run = 0; run < RUNS; run++) {
      const before = sink.taken()
      const took = await seconds(async () => {
        await pour(postfix.port, MAILS, BYTES)
        await sink.until(before + MAILS)
      })
      rates.push(MAILS / took)
    }
  } finally {
    await postfix.stop()
    await sink.stop()
  }
  return median(rates)
}

/** Row 5. @throws Missing */
export async function postfixFigures({ rate }: Through): Promise<Figure[]> {
  const note = 'reference: Postfix relaying as many to the same sink'
  const [plain, signed] = [await postfixRate(false), await postfixRate(true)]
  return [
    atLeast(1.1, {
      row: '5a',
      measure: '5,000 emails of 4 KB end to end, DKIM-signed, against Postfix',
      ours: rate,
      reference: plain,
      unit: 'emails/s',
      note,
    }),
    atLeast(1.6, {
      row: '5b',
      measure: 'the same, against Postfix with OpenDKIM',
      ours: rate,
      reference: signed,
      unit: 'emails/s',
      note: `${note}, signed by OpenDKIM`,
    }),
  ]
}

/** Row 6: the CPU time of a bare client for the same number of emails, in a separate process. */
export async function cpuFigure({ cpu_ms }: Through): Promise<Figure[]> {
  const sink = await startSmtpSink()
  const bare = fork(join(import.meta.dirname, 'bare-mailer.ts'), [String(sink.port), String(MAILS)])
  const [reference] = (await once(bare, 'message')) as [number]
  await sink.stop()
  return [
    atMost(1.7, {
      row: '6',
      measure: 'CPU time of a worker per email, with DKIM',
      ours: cpu_ms,
      reference,
      unit: 'ms',
      note: 'reference: bare nodemailer, pooled, unsigned',
    }),
  ]
}

/** Row 7: two workers with a sink that responds after 50 ms per email. */
export async function measureScaling(rig: Rig): Promise<Figure[]> {
  const rateOf = async (workers: number): Promise<number> => {
    const place = await rig.place()
    const [team] = await place.teams(1)
    if (!team) throw new Error('there must be a team')
    const sink = await startSlowSink(50)
    const api = await place.api()
    const mails = upTo(4_000)
    await postBatches(api.base, team, mails, BYTES)
    await api.stop()
    for (let started = 0; started < workers; started++) await place.worker({ SMTP_URL: smtpUrl(sink) })
    const before = sink.taken()
    const took = await seconds(() => sink.until(mails))
    await place.close()
    await sink.stop()
    return (mails - before) / took
  }
  const [one, two] = [await rateOf(1), await rateOf(2)]
  return [
    atLeast(1.8, {
      row: '7',
      measure: 'two workers, a sink with 50 ms per email',
      ours: two,
      reference: one,
      unit: 'emails/s',
      note: 'reference: one worker',
    }),
  ]
}

/** Row 8: from POST to the email at the sink, on an idle machine. */
export async function measureLatency(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  let arrived = Promise.withResolvers<void>()
  const sink = await startSlowSink(0, () => arrived.resolve())
  const api = await place.api()
  const bare = await oneByOne(api.base, team, 300)
  const worker = await place.worker({ SMTP_URL: smtpUrl(sink) })
  await sink.until(300)
  const transport = createTransport({ host: '127.0.0.1', port: sink.port, ignoreTLS: true, pool: true })
  const sends: number[] = []
  const message = {
    from: 'hello@example.com',
    to: 'someone@example.org',
    subject: 'Hello',
    html: 'x'.repeat(2_048),
  }
  for (let index = 0; index < 300; index++)
    sends.push((await seconds(() => transport.sendMail(message))) * 1_000)
  transport.close()
  const { post } = client(api.base, 1)
  const body = JSON.stringify(mail(2_048))
  const times: number[] = []
  for (let index = 0; index < upTo(500); index++) {
    arrived = Promise.withResolvers()
    const started = performance.now()
    await post('/v1/emails', body, asTeam(team))
    await arrived.promise
    times.push(performance.now() - started)
  }
  await worker.stop()
  await place.close()
  await sink.stop()
  const reference = median(bare) + median(sends)
  const common = { reference, unit: 'ms', note: 'reference: the median of one 201 and one bare sendMail' }
  return [
    atMost(1.5, {
      row: '8a',
      measure: 'from POST until sent when idle, p50',
      ours: median(times),
      ...common,
    }),
    atMost(5, { row: '8b', measure: 'the same, p99', ours: percentile(times, 0.99), ...common }),
  ]
}

/** Starts a Cloud API that accepts everything at once. */
async function startCloud() {
  let taken = 0
  const server = await startHttp((request, response) => {
    request.resume().on('end', () => {
      taken += 1
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ messaging_product: 'whatsapp', messages: [{ id: `wamid.${taken}` }] }))
    })
  })
  return { ...server, taken: () => taken }
}

/** Posts messages in items of 50 numbers, 20 items per call. */
async function postMessages(base: string, team: TestTeam, template_id: string, count: number): Promise<void> {
  const { post } = client(base, 2)
  let number = 15_555_550_000
  for (let left = count; left > 0; left -= 1_000) {
    const messages = Array.from({ length: 20 }, () => ({
      template_id,
      to: Array.from({ length: 50 }, () => `+${number++}`),
      parameters: { 'body:1': 'Ana' },
    }))
    await post('/v1/whatsapp/messages/batch', JSON.stringify({ messages }), asTeam(team))
  }
}

/** Row 9: WhatsApp end to end, at up to 1,000 messages per second, Meta's maximum for a number. */
export async function measureWhatsapp(rig: Rig): Promise<Figure[]> {
  const MESSAGES = upTo(20_000)
  const place = await rig.place()
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  const template = await place.database.transaction((tx) =>
    createWhatsappTemplate({ tx, now: new Date(), actor: null }, team.id, aTemplate()),
  )
  const cloud = await startCloud()
  const fetched = await seconds(async () => {
    let left = MESSAGES
    const loop = async () => {
      while (left-- > 0)
        await (await fetch(cloud.url, { method: 'POST', body: '{"to":"+15555550100"}' })).text()
    }
    await Promise.all(Array.from({ length: 50 }, loop))
  })
  const api = await place.api()
  await place.worker({
    WORKER_QUEUES: 'deliver-whatsapp',
    WHATSAPP_API_URL: cloud.url,
    WHATSAPP_ACCESS_TOKEN: 'token',
    WHATSAPP_PHONE_NUMBER_ID: '100',
    WHATSAPP_MESSAGES_PER_SECOND: '10000',
    WORKER_CONCURRENCY: '50',
  })
  const before = cloud.taken()
  const took = await seconds(async () => {
    await postMessages(api.base, team, template.id, MESSAGES)
    while (cloud.taken() - before < MESSAGES) await new Promise((resolve) => setTimeout(resolve, 10))
  })
  await place.close()
  cloud.close()
  return [
    atLeast(0.5, {
      row: '9',
      measure: 'WhatsApp end to end, to a local server',
      ours: MESSAGES / took,
      reference: MESSAGES / fetched,
      unit: 'messages/s',
      note: 'reference: a bare fetch loop, 50 at a time',
    }),
  ]
}

export const isMissing = (error: unknown): error is Missing => error instanceof Missing
