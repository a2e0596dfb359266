/** Rows 19 to 21: the effect of webhooks and of hanging endpoints on email, and webhooks per second. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { addEndpoint } from '../../db/messages/webhooks/endpoints.ts'
import { networksIn } from '../../db/process/public-address.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { SECRET_KEY } from '../support/environment.ts'
import type { TestTeam } from '../support/service.ts'
import { atLeast, type Figure, median, QUICK, seconds, upTo } from './figures.ts'
import { MAILS, openRelay, overTime, pourInTurns, type Rates, WARM } from './relay.ts'
import type { Place, Rig } from './rig.ts'
import { startHttp } from './sinks.ts'

const NEAR = '127.0.0.0/8'
const ROUNDS = QUICK ? 1 : 3
const HANGING = 10

/** Starts a server that accepts and counts everything, in a separate process. */
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
    return addEndpoint({ ...by, allowed: networksIn([NEAR]) }, id, { url, types })
  })

/** Waits until at most `most` webhooks are waiting. */
async function untilSent({ database }: Place, most: number): Promise<void> {
  for (;;) {
    const { left } = await database.one(sql.type(object({ left: number().defined() }))`
      select count(*) as left from webhook_messages where unfinished`)
    if (left <= most) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const middle = (own: readonly Rates[]): Rates => ({
  mails: median(own.map((each) => each.mails)),
  whole: median(own.map((each) => each.whole)),
})

/** Measures emails per second of two teams, in turns. */
async function inTurns(
  place: Place,
  teams: readonly [TestTeam, TestTeam],
  settled: () => Promise<void>,
): Promise<[Rates, Rates]> {
  const relay = await openRelay(place)
  for (const team of teams) await relay.pour(team, WARM, settled)
  const rates: [Rates[], Rates[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++)
    for (const index of [0, 1] as const) rates[index].push(await relay.pour(teams[index], MAILS, settled))
  await relay.close()
  return [middle(rates[0]), middle(rates[1])]
}

async function twoTeams(place: Place): Promise<[TestTeam, TestTeam]> {
  const [one, other] = await place.teams(2)
  if (!one || !other) throw new Error('there must be two teams')
  return [one, other]
}

/**
 * Row 19: the rate of a team with an endpoint for its emails' events, compared with a team without one.
 * Webhooks yield to waiting emails, so the note gives the rate until the last webhook has arrived.
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
  const whole = `until the last webhook has arrived, ${(beside.whole / without.whole).toFixed(2)}`
  const note = `reference: a team without an endpoint, alternating; ${came} webhooks arrived; ${whole}`
  const rates = { ours: beside.mails, reference: without.mails, unit: 'emails/s' }
  return [atLeast(0.85, { row: '19', measure: 'emails with their webhooks', ...rates, note })]
}

/** Row 20: the rate of emails without and with ten hanging endpoints, each with a backlog. */
export async function measureHanging(rig: Rig): Promise<Figure[]> {
  const server = await startHttp((request) => void request.resume())
  const open = async (hanging: number) => {
    const place = await rig.place()
    const [team, slow] = await twoTeams(place)
    for (let each = 0; each < hanging; each++) await subscribe(place, slow, server.url, ['*'])
    await fill(place, slow, upTo(500))
    return { place, team }
  }
  const [calm, hung] = [await open(0), await open(HANGING)]
  const [reference = 0, ours = 0] = await pourInTurns([calm, hung], 3 * ROUNDS)
  await Promise.all([calm.place.close(), hung.place.close()])
  server.close()
  const note = `reference: the same without them, ${3 * ROUNDS} turns of each`
  const rates = { ours, reference, unit: 'emails/s' }
  return [atLeast(0.97, { row: '20', measure: 'emails next to ten hanging endpoints', ...rates, note })]
}

/** Stores waiting messages with their jobs for each endpoint of a team. */
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

/**
 * Row 21: webhooks per second to one endpoint, compared with a fetch loop with the same concurrency, in
 * turns.
 */
export async function measureWebhooks(rig: Rig): Promise<Figure[]> {
  const count = upTo(4_000)
  const place = await rig.place()
  const receiver = await startTaking()
  const [team] = await twoTeams(place)
  await subscribe(place, team, receiver.url, ['*'])
  const worker = await place.worker({ SMTP_URL: 'smtp://127.0.0.1:9', WEBHOOK_ALLOW: NEAR })
  const bare = async (): Promise<number> => {
    const child = fork(join(import.meta.dirname, 'bare-poster.ts'), [receiver.url, String(count), BODY])
    return ((await once(child, 'message')) as [number])[0]
  }
  /** Measures the rate after the first tenth, when the worker is at full speed. */
  const sent = async (): Promise<number> => {
    await fill(place, team, count)
    worker.resume()
    await untilSent(place, count * 0.9)
    const from = await receiver.taken()
    const took = await seconds(() => untilSent(place, 0))
    return ((await receiver.taken()) - from) / took
  }
  const [ours, reference]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    worker.pause()
    reference.push(await bare())
    ours.push(await sent())
  }
  await worker.stop()
  receiver.close()
  await place.close()
  const note = 'alternating; each is claimed, read, signed, recorded and settled'
  const rates = { ours: overTime(ours), reference: overTime(reference), unit: '/s' }
  return [atLeast(0.5, { row: '21', measure: 'webhooks to one endpoint', ...rates, note })]
}
