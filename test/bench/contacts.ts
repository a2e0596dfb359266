/**
 * Row 11: a bulk upsert of 1,000 contacts over HTTP, half of them new, compared with the same upsert as one
 * statement.
 */
import { Client } from 'pg'
import { v7 as uuidv7 } from 'uuid'
import type { TestTeam } from '../support/service.ts'
import { atMost, type Figure, median, seconds } from './figures.ts'
import { asTeam, client, type Client as Http } from './load.ts'
import type { Place } from './rig.ts'

const ITEMS = 1_000
const ROUNDS = 20
const WARM_UP = 5

type Contact = { email: string; properties: Record<string, string> }

/** Every second contact is from the previous round. */
const contactsOf = (round: number): Contact[] =>
  Array.from({ length: ITEMS }, (_, index) => ({
    email: `${index % 2 === 0 ? round : round - 1}.${index - (index % 2)}@example.org`,
    properties: { plan: 'free', city: 'Bergen', number: String(index) },
  }))

const STATEMENT = `
  insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
  select $1, id, email, lower(email), 'subscribed', properties, '{}', now(), now()
  from unnest($2::uuid[], $3::text[], $4::jsonb[]) as item (id, email, properties)
  on conflict (team_id, identity) do update set properties = excluded.properties, updated_at = excluded.updated_at
  returning id`

const byStatement = (pg: Client, team: TestTeam, items: readonly Contact[]) =>
  pg.query({
    name: 'upsert',
    text: STATEMENT,
    values: [
      team.id,
      items.map(() => uuidv7()),
      items.map(({ email }) => email),
      items.map(({ properties }) => JSON.stringify(properties)),
    ],
  })

async function byApi({ post }: Http, team: TestTeam, items: readonly Contact[]): Promise<void> {
  const { data } = JSON.parse(
    await post('/v1/contacts/bulk', JSON.stringify({ contacts: items }), asTeam(team)),
  ) as { data: { id?: string }[] }
  if (data.length !== items.length || data.some(({ id }) => id === undefined))
    throw new Error('an item was refused')
}

/** Measures the medians in milliseconds, in turns. */
export async function measureUpserts(place: Place): Promise<{ ours: number; reference: number }> {
  const [one, other] = await place.teams(2)
  if (!one || !other) throw new Error('there must be two teams')
  const api = await place.api()
  const worker = await place.worker({ SMTP_URL: 'smtp://127.0.0.1:9' })
  const http = client(api.base, 1)
  const pg = new Client({ connectionString: place.url })
  await pg.connect()
  const [ours, reference]: [number[], number[]] = [[], []]
  for (let round = 1; round <= WARM_UP + ROUNDS; round++) {
    const items = contactsOf(round)
    const statement = await seconds(() => byStatement(pg, one, items))
    const call = await seconds(() => byApi(http, other, items))
    if (round <= WARM_UP) continue
    reference.push(statement * 1_000)
    ours.push(call * 1_000)
  }
  await pg.end()
  await Promise.all([api.stop(), worker.stop()])
  return { ours: median(ours), reference: median(reference) }
}

export const upsertFigure = (measured: { ours: number; reference: number }): Figure[] => [
  atMost(1.8, {
    row: '11',
    measure: 'bulk upsert of 1,000 contacts over HTTP, half of them new',
    ...measured,
    unit: 'ms',
    note: 'reference: the same upsert as one statement',
  }),
]
