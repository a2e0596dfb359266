/** The queries behind the dashboard's contacts: a filtered list by key, what was sent to one, subscribers of topics. */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { likePattern } from '../text/strings.ts'
import { type ContactRow, type ContactStatus, contactColumns, contactRow } from './contacts.sql.ts'

export type ContactSearch = {
  /** A part of the address. */
  email?: string | undefined
  status?: ContactStatus | undefined
  topic?: string | undefined
}

/** A page of a team's contacts; with `before`, those that follow this one. */
export async function contactsFound(
  tx: Tx,
  teamId: string,
  { email, status, topic }: ContactSearch,
  { before, limit }: { before?: string | undefined; limit: number },
): Promise<readonly ContactRow[]> {
  const conditions = [
    sql.fragment`team_id = ${teamId}`,
    ...(status === undefined ? [] : [sql.fragment`status = ${status}`]),
    ...(email === undefined ? [] : [sql.fragment`email ilike ${likePattern(email)}`]),
    ...(topic === undefined ? [] : [sql.fragment`${topic}::uuid = any(topic_ids)`]),
    ...(before === undefined
      ? []
      : [
          sql.fragment`(created_at, id) < (
            select created_at, id from contacts where team_id = ${teamId} and id = ${before})`,
        ]),
  ]
  // Ids from an index alone, then only the page's own rows.
  return tx.any(sql.type(contactRow)`
    select ${contactColumns} from contacts
    join (
      select id as page_id from contacts
      where ${sql.join(conditions, sql.fragment` and `)} order by created_at desc, id desc limit ${limit}
    ) page on id = page_id
    where team_id = ${teamId} order by created_at desc, id desc`)
}

const emailRow = object({
  id: string().defined(),
  subject: string().defined(),
  status: string().defined(),
  created_at: string().defined(),
})
export type SentEmailRow = InferType<typeof emailRow>

/** The latest emails to an address, whatever its spelling: `identities` are its spellings' own. */
export async function emailsToContact(
  tx: Tx,
  teamId: string,
  identities: readonly string[],
  limit: number,
): Promise<readonly SentEmailRow[]> {
  return tx.any(sql.type(emailRow)`
    select id, subject, status, created_at from emails
    where team_id = ${teamId} and recipient_identities(to_emails) && ${sql.array(identities, 'text')}
    order by id desc limit ${limit}`)
}

const countRow = object({ topic_id: string().defined(), count: number().defined() })

/** How many contacts have each topic; topics without any are missing. */
export async function subscribersByTopic(tx: Tx, teamId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.any(sql.type(countRow)`
    select topic_id, count(*) as count from contacts c cross join unnest(c.topic_ids) topic_id
    where c.team_id = ${teamId} and c.topic_ids <> '{}' group by topic_id`)
  return new Map(rows.map(({ topic_id, count }) => [topic_id, count]))
}
