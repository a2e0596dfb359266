/** Runs use cases as a request's user, at the database's time. They write their own audit entries (record.ts). */
import { auditRead as audit } from '../../../db/accounts/audit/audit-read.ts'
import type { By } from '../../../db/accounts/audit/record.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import type { PageDeps } from './deps.ts'
import type { PersonRequest, TeamRequest } from './page.ts'

/** Runs `work` in one transaction, as the user of the request. */
export const asActor = <T>(
  { person }: PersonRequest,
  { database }: Pick<PageDeps, 'database'>,
  work: (by: By) => Promise<T>,
): Promise<T> =>
  database.transaction(async (tx) => work({ tx, now: await serviceTime(tx), actor: person.email }))

/** Records in the audit log that an operator read the data of a team, unless they are a member of it. */
export const auditRead = (
  { team, person, now }: TeamRequest,
  { database }: Pick<PageDeps, 'database'>,
  read: { action: string; subject: string },
): Promise<void> => audit({ tx: database, now, actor: person.email }, team, read)
