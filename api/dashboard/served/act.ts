/** What a person changes, in one transaction with its line in the audit trail; and what an operator looks into. */
import { type By, type Deed, record } from '../../../db/accounts/audit/record.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import type { PageDeps } from './deps.ts'
import type { PersonRequest, TeamRequest } from './page.ts'

/** Does something that records itself, as the person of the request, at the database's time. */
export const inPerson = <T>(
  { person }: PersonRequest,
  { database }: Pick<PageDeps, 'database'>,
  work: (by: By) => Promise<T>,
): Promise<T> =>
  database.transaction(async (tx) => work({ tx, now: await serviceTime(tx), actor: person.email }))

/** Does something together with its record, or not at all. `now` is the database's time. */
export async function act<T>(
  { person }: PersonRequest,
  { database }: Pick<PageDeps, 'database'>,
  deed: Deed,
  work: (by: By) => Promise<T>,
): Promise<T> {
  return database.transaction(async (tx) => {
    const by = { tx, now: await serviceTime(tx), actor: person.email }
    const result = await work(by)
    await record(by, deed)
    return result
  })
}

/** A deed in the team of the request. */
export const inTeam = ({ team }: TeamRequest, action: string, subject: string, detail = ''): Deed => ({
  team_id: team.id,
  action,
  subject,
  detail,
})

/** An operator who reads what a team's messages and lists hold, without being its member, leaves a trace. */
export async function noteLook(
  { team, person, now }: TeamRequest,
  { database }: Pick<PageDeps, 'database'>,
  { action, subject }: { action: string; subject: string },
): Promise<void> {
  if (team.member) return
  await record({ tx: database, now, actor: person.email }, { team_id: team.id, action, subject })
}
