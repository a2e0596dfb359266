/** Finds the subjects of events about one address. */
import { sql } from 'slonik'
import { isCustomers } from '../../channels/email.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow } from '../../postgres/rows.ts'

/** Returns the contact with any of these identities, and the newest emails to these. */
export const subjectsOfAddress = (tx: Tx, teamId: string, identities: readonly string[], limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select id from contacts where team_id = ${teamId} and identity = any(${sql.array(identities, 'text')})
    union all (
      select id from accepted_emails
      where team_id = ${teamId} and ${isCustomers} and recipient_identities(to_emails) && ${sql.array(identities, 'text')}
      order by id desc limit ${limit})`)
