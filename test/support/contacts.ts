/** Helpers of tests of contacts: a team's quota, and the two ways to count its usage. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { mixed, object } from 'yup'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { applyContactEffects, lockTouchedAddresses } from '../../db/audience/suppressions/suppress.ts'
import { insertEndpoint } from '../../db/messages/webhooks/endpoints.sql.ts'
import { countRow } from '../../db/postgres/rows.ts'
import { idNow } from '../../db/process/ids.ts'
import { byCli, makeTeam, type Service, type TestTeam } from './service.ts'

/** Creates a team with a quota of `contacts` contacts. */
export const teamWithRoom = async (service: Service, contacts: number): Promise<TestTeam> =>
  await makeTeam(service, { plan: 'free', contact_limit: contacts })

/** Changes a team's quota of contacts. */
export async function setRoom(service: Service, team: TestTeam, contacts: number): Promise<void> {
  await service.database.transaction(async (tx) => {
    await subscribeTeam(byCli(tx), team.id, { plan: 'free', contact_limit: contacts })
  })
}

/** Returns the usage as in `team show`. */
export const contactsUsed = async ({ database }: Service, { id }: TestTeam): Promise<number> =>
  (await showTeam(database, id)).used.contacts

/** Counts the contacts in the table. */
export const contactsStored = ({ database }: Service, { id }: TestTeam): Promise<number> =>
  database.oneFirst(sql.type(countRow)`select count(*) as count from contacts where team_id = ${id}`)

/**
 * Stores the contacts `person1@example.org`, `person2@example.org` and so on for a team. They are older than
 * all others, and each has this note as a property.
 */
export const fillContacts = (
  { database }: Pick<Service, 'database'>,
  teamId: string,
  count: number,
  note = '',
) =>
  database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${teamId}::uuid, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, email, email, 'subscribed',
      jsonb_build_object('note', ${note}::text), '{}', now(), now()
    from generate_series(1, ${count}::int) n, lateral (select 'person' || n || '@example.org' as email) one`)

/** Applies a provider's report to a contact. */
export async function report(
  { database }: Pick<Service, 'database'>,
  { id: team_id }: Pick<TestTeam, 'id'>,
  recipient: string,
  kind: 'bounced' | 'complained',
): Promise<void> {
  const effect = kind === 'bounced' ? 'hard' : 'complaint'
  const about = { email_id: uuidv7(), occurred_at: new Date(), detail: 'the words of a server' }
  const event = { team_id, recipient, effect, ...about } as const
  await database.transaction(async (tx) => {
    const addressFor = await lockTouchedAddresses(tx, [event], new Date())
    await applyContactEffects(tx, addressFor, [event], new Date())
  })
}

/** Adds an endpoint for all events of a team. */
export const listenTo = async ({ database }: Pick<Service, 'database'>, teamId: string): Promise<void> => {
  const endpoint = { id: idNow(), url: 'https://example.com/', name: '', types: ['*'], domain: null }
  await insertEndpoint(database, teamId, { ...endpoint, secret: Buffer.alloc(1) }, new Date())
}

type Announced = { type: string; timestamp: string; data: { detail: string; topic_ids?: string[] } }

/** Returns the events of a contact, oldest first. */
export const announced = ({ database }: Pick<Service, 'database'>, id: string) =>
  database.anyFirst(sql.type(object({ body: mixed<Announced>().defined() }))`
    select body::json as body from webhook_messages where subject_id = ${id} order by id`)
