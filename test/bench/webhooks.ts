/** Rows 19 to 21: what webhooks cost mail, what endpoints that hang do, and how many webhooks go out in a second. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { addEndpoint } from '../../db/messages/webhooks/endpoints.ts'
import { networksOf } from '../../db/process/public-address.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { SECRET_KEY } from '../support/environment.ts'
import type { TestTeam } from '../support/service.ts'
import { atLeast, type Figure, median, QUICK, seconds, upTo } from './figures.ts'
import { postBatches } from './load.ts'
import type { Place, Rig } from './rig.ts'
import { startSmtpSink } from './sinks.ts'

const NEAR = '127.0.0.0/8'
const BYTES = 4_096
const ROUNDS = QUICK ? 1 : 3
const HANGING = 10

async function startServer(answer: RequestListener) {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => server.closeAllConnections() ?? server.close(),
  }
}

/** Takes everything at once, in a process of its own, and counts it. */
async function startTaking() {
  const child = fork(join(import.meta.dirname, 'webhook-receiver.ts'))
  const heard = async (): Promise<number> => ((await once(child, 'message')) as [number])[0]
  return {
    url: `http://127.0.0.1:${await heard()}/`,
    close: () => child.disconnect(),
    taken: () => {
      const answer = heard()
      child.send('taken')
      return answer
    },
  }
}

const subscribe = ({ database }: Place, { id }: TestTeam, url: string, types: readonly string[]) =>
  database.transaction((tx) => {
    const by = { tx, now: new Date(), actor: 'bench', secrets: createSecrets(SECRET_KEY) }
    return addEndpoint({ ...by, allowed: networksOf([NEAR]) }, id, { url, types })
  })

/** Waits until `most` webhooks at most are left to send. */
async function untilSent({ database }: Place, most: number): Promise<void> {
  for (;;) {
    const { left } = await database.one(sql.type(object({ left: number().defined() }))`
      select count(*) as left from webhook_messages where unfinished`)
    if (left <= most) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Mails a second until the last is with the sink, and until what each turn leaves to do is done too. */
type Rates = { mails: number; whole: number }

/**
 * Mails a second of one team, accepted by the API and taken by the sink; another of each, turn by turn.
 * @param settled waits for what a turn leaves to do, so that it is no burden to the next.
 */
async function inTurns(
  place: Place,
  teams: readonly [TestTeam, TestTeam],
  settled = async (): Promise<void> => {},
): Promise<[Rates, Rates]> {
  const sink = await startSmtpSink()
  const api = await place.api()
  const smtp = `smtp://127.0.0.1:${sink.port}?ignoreTLS=true`
  const worker = await place.worker({ SMTP_URL: smtp, WEBHOOK_ALLOW: NEAR })
  const mails = upTo(1_500)
  const pour = async (team: TestTeam, count: number): Promise<Rates> => {
    const before = sink.taken()
    const took = await seconds(async () => {
      await postBatches(api.base, team, count, BYTES)
      await sink.until(before + count)
    })
    return { mails: count / took, whole: count / (took + (await seconds(settled))) }
  }
  for (const team of teams) await pour(team, 200)
  const rates: [Rates[], Rates[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++)
    for (const index of [0, 1] as const) rates[index].push(await pour(teams[index], mails))
  await Promise.all([api.stop(), worker.stop()])
  await sink.stop()
  const middle = (own: readonly Rates[]): Rates => ({
    mails: median(own.map((each) => each.mails)),
    whole: median(own.map((each) => each.whole)),
  })
  return [middle(rates[0]), middle(rates[1])]
}

async function twoTeams(place: Place): Promise<[TestTeam, TestTeam]> {
  const [one, other] = await place.teams(2)
  if (!one || !other) throw new Error('there must be two teams')
  return [one, other]
}

/**
 * Row 19: the rate of a team with an endpoint for what each mail brings, beside a team without one. Webhooks give way
 * to mail that waits: the note says how it looks with all that they cost, until the last of them has come.
 */
export async function measureNotifying(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const receiver = await startTaking()
  const [plain, notified] = await twoTeams(place)
  await subscribe(place, notified, receiver.url, ['email.sent', 'email.delivered'])
  const [without, beside] = await inTurns(place, [plain, notified], () => untilSent(place, 0))
  const came = await receiver.taken()
  receiver.close()
  await place.close()
  const whole = `until the last webhook has come too, ${(beside.whole / without.whole).toFixed(2)}`
  const note = `reference: a team without an endpoint, turn by turn; ${came} webhooks came; ${whole}`
  const rates = { ours: beside.mails, reference: without.mails, unit: 'mails/s' }
  return [atLeast(0.85, { row: '19', measure: 'mail beside its webhooks', ...rates, note })]
}

/** Row 20: the rate of mail before and while ten endpoints hang, each with a backlog. */
export async function measureHanging(rig: Rig): Promise<Figure[]> {
  const measure = async (hanging: boolean): Promise<number> => {
    const place = await rig.place()
    const server = await startServer((request) => void request.resume())
    const [team, slow] = await twoTeams(place)
    for (let each = 0; each < HANGING && hanging; each++) await subscribe(place, slow, server.url, ['*'])
    if (hanging) await fill(place, slow, upTo(500))
    const [{ mails }] = await inTurns(place, [team, team])
    server.close()
    await place.close()
    return mails
  }
  const rates: { calm: number[]; hung: number[] } = { calm: [], hung: [] }
  for (let round = 0; round < ROUNDS; round++) {
    rates.calm.push(await measure(false))
    rates.hung.push(await measure(true))
  }
  const note = 'reference: the same without them, in turns'
  const measured = { ours: median(rates.hung), reference: median(rates.calm), unit: 'mails/s', note }
  return [atLeast(0.97, { row: '20', measure: 'mail beside ten endpoints that hang', ...measured })]
}

/** Gives each endpoint of a team `count` messages that wait, with their jobs. */
async function fill({ database }: Place, { id }: TestTeam, messages: number): Promise<void> {
  await database.query(sql.unsafe`
    with made as (
      insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
      select w.team_id, gen_random_uuid(), w.id, gen_random_uuid(), 'webhook.test', ${BODY}, 'queued', now()
      from webhook_endpoints w, generate_series(1, ${messages}) where w.team_id = ${id}
      returning *)
    insert into pgboss.job (id, name, data, group_id, retry_limit, expire_seconds, heartbeat_seconds)
    select m.id, 'deliver-webhook',
      jsonb_build_object('team_id', m.team_id, 'message_id', m.id, 'endpoint_id', m.endpoint_id),
      'webhook:' || m.endpoint_id, 64, 300, 10
    from made m`)
}

const BODY = JSON.stringify({
  type: 'webhook.test',
  timestamp: new Date(0),
  data: { detail: 'x'.repeat(500) },
})

/** Row 21: webhooks a second to one endpoint, beside a loop of fetch that only posts as many at once. */
export async function measureWebhooks(rig: Rig): Promise<Figure[]> {
  const count = upTo(4_000)
  const place = await rig.place()
  const receiver = await startTaking()
  const [team] = await twoTeams(place)
  await subscribe(place, team, receiver.url, ['*'])
  const child = fork(join(import.meta.dirname, 'bare-poster.ts'), [receiver.url, String(count), BODY])
  const [reference] = (await once(child, 'message')) as [number]
  const before = await receiver.taken()
  await fill(place, team, count)
  const worker = await place.worker({ SMTP_URL: 'smtp://127.0.0.1:9', WEBHOOK_ALLOW: NEAR })
  await untilSent(place, count * 0.9)
  const from = await receiver.taken()
  const took = await seconds(() => untilSent(place, 0))
  const taken = await receiver.taken()
  await worker.stop()
  receiver.close()
  await place.close()
  const ours = (taken - from) / took
  const note = `${taken - before} came; each is claimed, read, signed, recorded and settled`
  return [atLeast(0.5, { row: '21', measure: 'webhooks to one endpoint', ours, reference, unit: '/s', note })]
}
