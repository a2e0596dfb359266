/**
 * Row 25 compares accepted emails per second with a bare loop, next to the database and 1 ms away from it
 * each way. The loop has as many clients as the API and the same pool size. Each client opens a transaction,
 * inserts an email with the same bytes and its job, and commits, through pg with prepared statements.
 */
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import type { TestTeam } from '../support/service.ts'
import { away } from './distance.ts'
import { atLeast, type Figure, median, QUICK } from './figures.ts'
import { flood, mail } from './load.ts'
import type { Place, Rig } from './rig.ts'

const SECONDS = QUICK ? 1 : 4
const RUNS = QUICK ? 1 : 5
const BYTES = 2_048
const TEAMS = 50
const CONNECTIONS = { single: 64, batch: 16 }
/** The default of DATABASE_POOL_SIZE. */
const POOL_SIZE = 10

const INSERT_EMAIL = {
  name: 'email',
  text: `insert into accepted_emails (
      team_id, id, domain_id, from_address, to_emails, subject, html, reply_to, tags, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, '[]', now())`,
}
const INSERT_JOB = {
  name: 'job',
  text: `insert into pgboss.job (id, name, data, policy) values ($1, 'deliver-email', $2, 'standard')`,
}

async function storeOne(client: pg.PoolClient, { id: team_id, domain_id }: TestTeam): Promise<void> {
  const id = uuidv7()
  const { from, to, subject, html } = mail(BYTES)
  await client.query({ name: 'begin', text: 'begin' })
  await client.query({ ...INSERT_EMAIL, values: [team_id, id, domain_id, from, to, subject, html, from] })
  await client.query({ ...INSERT_JOB, values: [id, { team_id, id }] })
  await client.query({ name: 'commit', text: 'commit' })
}

/** Returns how many emails the bare loop stores per second. */
async function bareLoop(url: string, team: TestTeam): Promise<number> {
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE })
  const until = performance.now() + SECONDS * 1_000
  let stored = 0
  const loop = async (): Promise<void> => {
    while (performance.now() < until) {
      const client = await pool.connect()
      await storeOne(client, team).finally(() => client.release())
      stored += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS.single }, loop))
  await pool.end()
  return stored / SECONDS
}

type Rates = { loop: number; many: number; one: number; batch: number }

/** Measures in turns. @returns the medians of the ratios to the loop's rate, and that rate. */
async function measureAt(place: Place, url: string): Promise<Rates> {
  const teams = await place.teams(TEAMS)
  const [first] = teams
  if (!first) throw new Error('there must be a team')
  const api = await place.api({ DATABASE_URL: url })
  const single = `${api.base}/v1/emails`
  const busy = { connections: CONNECTIONS.single, seconds: SECONDS }
  const hundred = { emails: Array.from({ length: 100 }, () => mail(BYTES)) }
  const turn = async (): Promise<Rates> => {
    const loop = await bareLoop(url, first)
    return {
      loop,
      many: (await flood(single, teams, mail(BYTES), busy)) / loop,
      one: (await flood(single, [first], mail(BYTES), busy)) / loop,
      batch:
        (100 *
          (await flood(`${single}/batch`, teams, hundred, { ...busy, connections: CONNECTIONS.batch }))) /
        loop,
    }
  }
  await turn()
  const turns: Rates[] = []
  for (let run = 0; run < RUNS; run += 1) turns.push(await turn())
  await api.stop()
  const of = (name: keyof Rates): number => median(turns.map((each) => each[name]))
  return { loop: of('loop'), many: of('many'), one: of('one'), batch: of('batch') }
}

const GOALS = { near: { many: 0.7, one: 0.9, batch: 2.8 }, away: { many: 1.5, one: 1.6, batch: 6 } }
const NAMES = { many: '50 teams', one: 'one team', batch: 'batches of 100' }

function figuresOf(where: keyof typeof GOALS, rates: Rates, letters: string): Figure[] {
  const place = where === 'near' ? '' : ', distant database'
  return (['many', 'one', 'batch'] as const).map((kind, index) =>
    atLeast(GOALS[where][kind], {
      row: `25${letters[index]}`,
      measure: `accepted emails, ${NAMES[kind]}${place}`,
      ours: rates[kind] * rates.loop,
      reference: rates.loop,
      unit: 'emails/s',
      note: 'reference: begin, an email, a job and commit, through pg',
    }),
  )
}

export async function measureBareLoop(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const far = await away(place.url)
  try {
    const near = await measureAt(place, place.url)
    return [...figuresOf('near', near, 'abc'), ...figuresOf('away', await measureAt(place, far.url), 'def')]
  } finally {
    await place.close()
    far.stop()
  }
}
