/** What tests of contacts share: a team's allowance, and the two ways to count what it has used of it. */
import { sql } from 'slonik'
import { number, object } from 'yup'
import { subscribeTeam } from '../../db/teams/subscribe.ts'
import { showTeam } from '../../db/teams/view.ts'
import { makeTeam, type Service, type TestTeam } from './service.ts'

/** A team that may store `contacts` contacts. */
export const teamWithRoom = async (service: Service, contacts: number): Promise<TestTeam> =>
  await makeTeam(service, { plan: 'free', contact_limit: contacts })

/** Changes how many contacts a team may store. */
export async function setRoom(service: Service, team: TestTeam, contacts: number): Promise<void> {
  await service.database.transaction(async (tx) => {
    await subscribeTeam({ tx, now: new Date() }, team.id, { plan: 'free', contact_limit: contacts })
  })
}

/** As `team show` prints it. */
export const contactsUsed = async ({ database }: Service, { id }: TestTeam): Promise<number> =>
  (await showTeam(database, id, new Date())).used.contacts

/** As they lie in the table. */
export async function contactsStored({ database }: Service, { id }: TestTeam): Promise<number> {
  const { count } = await database.one(sql.type(object({ count: number().defined() }))`
    select count(*) as count from contacts where team_id = ${id}`)
  return count
}

/** What a provider's report does to a contact's row. */
export async function suppress(
  { database }: Service,
  { id }: TestTeam,
  identity: string,
  suppression: 'bounced' | 'complained',
): Promise<void> {
  await database.query(sql.unsafe`
    update contacts set status = ${suppression}, suppression = ${suppression}
    where team_id = ${id} and identity = ${identity}`)
}
