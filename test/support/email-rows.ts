/**
 * Creates, ages and deletes emails with direct statements, where the API would be slow or reject it. It knows
 * that an accepted email and its state are two tables.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Service } from './service.ts'

type Place = Pick<Service, 'database'>

/**
 * Stores emails with their states.
 * @param selected a query with columns of the view `emails`, by name. Only the columns below are stored.
 */
export const insertEmailRows = async ({ database }: Place, selected: FragmentSqlToken): Promise<void> => {
  await database.query(sql.unsafe`
    with item as materialized (${selected}), accepted as (
      insert into accepted_emails (
        team_id, id, domain_id, from_address, to_emails, subject, html, tags, created_at, reply_to, http_request_id,
        broadcast_id, contact_id, template_id, template_version_id, person)
      select r.team_id, r.id, r.domain_id, r.from_address, r.to_emails, r.subject, r.html, r.tags, r.created_at,
        r.reply_to, r.http_request_id, r.broadcast_id, r.contact_id, r.template_id, r.template_version_id,
        case when r.broadcast_id is not null then lower(r.to_emails[1]) end
      from item cross join lateral jsonb_populate_record(null::accepted_emails, to_jsonb(item)) r
    )
    insert into email_states (
      team_id, id, created_at, internal, status, size_kb, provider_message_id, broadcast_id, contact_id)
    select r.team_id, r.id, r.created_at, false, r.status, r.size_kb, r.provider_message_id, r.broadcast_id,
      case when r.broadcast_id is not null then (to_jsonb(item) ->> 'contact_id')::uuid end
    from item cross join lateral jsonb_populate_record(null::email_states, to_jsonb(item)) r`)
}

/** Makes emails older by a PostgreSQL interval. @param which a condition on columns of `email_states`. */
export const ageEmailRows = async ({ database }: Place, which: FragmentSqlToken, interval: string) => {
  await database.query(sql.unsafe`
    with older as (
      update email_states set created_at = created_at - ${interval}::interval where ${which} returning team_id, id
    )
    update accepted_emails set created_at = created_at - ${interval}::interval
    where (team_id, id) in (select team_id, id from older)`)
}

/** Deletes emails without events. @param which a condition on columns of `email_states`. */
export const deleteEmailRows = async ({ database }: Place, which: FragmentSqlToken): Promise<void> => {
  await database.query(sql.unsafe`
    with gone as (delete from email_states where ${which} returning team_id, id)
    delete from accepted_emails where (team_id, id) in (select team_id, id from gone)`)
}
