/**
 * Rows 16 to 18: the speed of the fan-out, its effect on single sends, and a small topic among a million
 * contacts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { number } from 'yup'
import { createVersions } from '../../db/content/templates/versions.ts'
import { expandStep } from '../../db/messages/broadcasts/expand.ts'
import type { Database } from '../../db/postgres/pool.ts'
import { row } from '../../db/postgres/rows.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { createProducer } from '../../db/queue/producer.ts'
import { makeAudience } from '../support/audience.ts'
import { SECRET_KEY } from '../support/environment.ts'
import type { TestTeam } from '../support/service.ts'
import { atLeast, atMost, type Figure, percentile, upTo } from './figures.ts'
import { asTeam, client, mail } from './load.ts'
import type { Place, Rig, Watched } from './rig.ts'
import { startSlowSink } from './sinks.ts'

const REACHABLE = { PUBLIC_URL: 'http://127.0.0.1' }
const BRAKES = { bounce_percent: 5, complaint_percent: 0.1 }

/** Creates a broadcast and starts it. @returns its id. */
async function start({ base }: Watched, team: TestTeam, draft: Record<string, unknown>): Promise<string> {
  const { post } = client(base, 1)
  const made = await post('/v1/broadcasts', JSON.stringify(draft), asTeam(team))
  const { id } = JSON.parse(made) as { id: string }
  await post(`/v1/broadcasts/${id}/send`, '{}', asTeam(team))
  return id
}

async function aTeam(place: Place): Promise<TestTeam> {
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  return team
}

/** Marks created emails as delivered, so that the fan-out continues. */
const deliverAll = ({ database }: Place, broadcast: string) =>
  database.query(sql.unsafe`
    update email_states set status = 'sent', provider_message_id = id::text
    where broadcast_id = ${broadcast} and unfinished`)

/**
 * Row 16: steps of the fan-out only, in this process, one after another. Created emails are removed at once.
 */
export async function measureWalk(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const team = await aTeam(place)
  const contacts = upTo(40_000)
  const api = await place.api(REACHABLE)
  const id = await start(api, team, await makeAudience(place.database, team.id, { contacts }))
  await api.stop()
  const queue = createProducer()
  const deps = {
    queue,
    versions: createVersions(),
    secrets: createSecrets(SECRET_KEY),
    ahead: 2_000,
    brakes: BRAKES,
  }
  let took = 0
  for (let isMore = true; isMore; ) {
    const began = performance.now()
    const { kind } = await place.database.transaction((tx) => expandStep({ ...deps, tx }, team.id, id))
    took += performance.now() - began
    if (kind === 'full') await deliverAll(place, id)
    isMore = kind === 'moved' || kind === 'full'
  }
  await place.close()
  return [
    atLeast(1, {
      row: '16',
      measure: `a broadcast’s scan of ${contacts.toLocaleString('en')} contacts`,
      ours: (contacts * 1_000) / took,
      reference: 5_000,
      unit: 'rows/s',
      note: 'reference: the goal of 5,000',
    }),
  ]
}

type Singles = { calls: number[]; waits: number[] }

/** Sends single emails at a steady rate, and records when each was sent. */
export async function singles(
  { base }: { base: string },
  team: TestTeam,
  arrivals: Pick<ReadonlyMap<string, number>, 'has' | 'get'>,
  { rate, seconds }: { rate: number; seconds: number },
): Promise<Singles> {
  const { post } = client(base)
  const calls: number[] = []
  const sent: { id: string; at: number }[] = []
  const body = JSON.stringify(mail(2_048))
  const begun = performance.now()
  const pending: Promise<void>[] = []
  for (let index = 0; index < rate * seconds; index++) {
    const due = begun + (index * 1_000) / rate
    if (due > performance.now()) await sleep(due - performance.now())
    const started = performance.now()
    pending.push(
      post('/v1/emails', body, asTeam(team)).then((text) => {
        calls.push(performance.now() - started)
        sent.push({ id: (JSON.parse(text) as { id: string }).id, at: performance.now() })
      }),
    )
  }
  await Promise.all(pending)
  for (let tries = 0; tries < 100 && sent.some(({ id }) => !arrivals.has(id)); tries++) await sleep(100)
  const waits = sent.map(({ id, at }) => (arrivals.get(id) ?? Number.POSITIVE_INFINITY) - at)
  return { calls, waits }
}

const UUID = /^message-id:.*?([0-9a-f]{8}-[0-9a-f-]{27})/im

/**
 * Row 17: single sends of another team, before a broadcast to 100,000 contacts and during its fan-out and
 * delivery.
 */
export async function measureBeside(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const [team, other] = [await aTeam(place), await aTeam(place)]
  const arrivals = new Map<string, number>()
  const sink = await startSlowSink(0, (text) => {
    const id = UUID.exec(text)?.[1]
    if (id) arrivals.set(id, performance.now())
  })
  const api = await place.api(REACHABLE)
  await place.worker({ SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true` })
  const draft = await makeAudience(place.database, team.id, { contacts: upTo(100_000) })
  const load = { rate: 10, seconds: upTo(20) }
  await singles(api, other, arrivals, { rate: 10, seconds: 2 })
  const before = await singles(api, other, arrivals, load)
  await start(api, team, draft)
  await sleep(2_000)
  const during = await singles(api, other, arrivals, load)
  await place.close()
  await sink.stop()
  const common = { unit: 'ms', note: 'reference: the same without the broadcast' }
  const [calm, busy] = [percentile(before.calls, 0.99), percentile(during.calls, 0.99)]
  return [
    {
      ...common,
      row: '17a',
      measure: 'p99 of single sends while a broadcast to 100,000 contacts is sent',
      ours: busy,
      reference: calm,
      ratio: busy / calm,
      goal: '+30 ms',
      met: busy <= calm + 30,
    },
    {
      ...common,
      row: '17b',
      measure: 'p99 from their 201 until sent',
      ours: percentile(during.waits, 0.99),
      reference: percentile(before.waits, 0.99),
      ratio: percentile(during.waits, 0.99) / percentile(before.waits, 0.99),
      goal: '≤ 1 s',
      met: percentile(during.waits, 0.99) <= 1_000,
    },
  ]
}

/** Returns the age of the oldest transaction of other connections, in milliseconds. */
const oldestTransaction = async (database: Database): Promise<number> =>
  (
    await database.one(sql.type(row({ age: number().nullable() }))`
      select (extract(epoch from max(clock_timestamp() - xact_start)) * 1000)::float8 as age from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`)
  ).age ?? 0

/** Row 18: a topic of 50 in a team of 1,000,000 contacts. */
export async function measureNeedle(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const team = await aTeam(place)
  const contacts = upTo(1_000_000)
  const sink = await startSlowSink(0)
  const draft = await makeAudience(place.database, team.id, { contacts, of_topic: contacts / 50 })
  await place.database.query(sql.unsafe`vacuum analyze contacts`)
  const api = await place.api(REACHABLE)
  await place.worker({ SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true` })
  let longest = 0
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      longest = Math.max(longest, await oldestTransaction(place.database))
      await sleep(20)
    }
  })()
  const began = performance.now()
  await start(api, team, draft)
  await sink.until(50)
  const took = performance.now() - began
  isOver = true
  await watching
  await place.close()
  await sink.stop()
  const note = '1,000,000 contacts in the team'
  return [
    atMost(1, {
      row: '18a',
      measure: 'a broadcast to 50 of 1,000,000 contacts, all sent',
      ours: took,
      reference: 20_000,
      unit: 'ms',
      note,
    }),
    atMost(1, {
      row: '18b',
      measure: 'its longest transaction',
      ours: longest,
      reference: 1_000,
      unit: 'ms',
      note,
    }),
  ]
}
