/**
 * Who acts behind a page: use cases are given the person of the request, at the database's time, and write their own
 * line in the audit trail (db/accounts/audit/record.ts). Must not write lines.
 */
import { auditRead as audit } from '../../../db/accounts/audit/audit-read.ts'
import type { By } from '../../../db/accounts/audit/record.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import type { PageDeps } from './deps.ts'
import type { PersonRequest, TeamRequest } from './page.ts'

/** Does something as the person of the request, in one transaction. */
export const asActor = <T>(
  { person }: PersonRequest,
  { database }: Pick<PageDeps, 'database'>,
  work: (by: By) => Promise<T>,
): Promise<T> =>
  database.transaction(async (tx) => work({ tx, now: await serviceTime(tx), actor: person.email }))

/** An operator who reads what a team's messages and lists hold, without being its member, leaves a trace. */
export const auditRead = (
  { team, person, now }: TeamRequest,
  { database }: Pick<PageDeps, 'database'>,
  read: { action: string; subject: string },
): Promise<void> => audit({ tx: database, now, actor: person.email }, team, read)
