/** The channel of emails: its tables, its two queues, and how its messages are found. */
import { sql } from 'slonik'
import { ERASED } from '../validation/addressees.ts'
import { anyText, anyUuid, type Channel, ofTestTeam, timed } from './channel.sql.ts'
import { EMAIL_FACTS, RETRIES_ENDED } from './email.ts'

/** True for a team's own email, false for internal email (a sign-in link or a notice). For both tables. */
export const isCustomers = sql.fragment`not internal`

/**
 * True if an email is to any of these recipients. The second condition is always true, and lowers the planner's
 * estimate. If hardly any address repeats, PostgreSQL has no statistics on them. The planner then expects 0.5 % of
 * all emails, and reads a team's newest emails, not the index (with 500,000 emails, 76,000 buffers instead of 9).
 * @param identities the identities of all spellings.
 */
export const isToAny = (identities: readonly string[], recipients = sql.fragment`to_emails`) => sql.fragment`
  recipient_identities(${recipients}) && ${sql.array(identities, 'text')} and num_nonnulls(${recipients}) = 1`

export const EMAIL: Channel<'deliver-email'> = {
  ...EMAIL_FACTS,
  job: 'deliver-email',
  test: false,
  payload: {
    of: ({ team_id, id }) => ({ team_id, email_id: id }),
    ref: ({ team_id, email_id }) => ({ team_id, id: email_id }),
  },
  job_of: sql.fragment`
    case when ${ofTestTeam} then 'deliver-test' when broadcast_id is null then 'deliver-email'
      else 'deliver-broadcast' end`,
  rows: sql.fragment`email_states`,
  ...timed,
  undelivered: sql.fragment`(status = 'queued' and provider_message_id is null or pending_recipients is not null)`,
  requests: null,
  templates: null,
  events: sql.fragment`email_events`,
  message: sql.fragment`email_id`,
  further: {
    columns: sql.fragment`, recipient, contact_id, effect`,
    types: { recipient: 'text', contact_id: 'uuid', effect: 'text' },
  },
  suppressible: sql.fragment`
    case when not m.internal then
      coalesce(m.pending_recipients, (
        select e.to_emails from accepted_emails e where e.team_id = m.team_id and e.id = m.id)) end`,
  bulk_pause: sql.fragment`(
    select t.bulk_pause from teams t
    where t.id = m.team_id and t.bulk_paused_at is not null and (
      exists (select from accepted_emails e where e.team_id = m.team_id and e.id = m.id and e.batch)
      or exists (
        select from broadcasts b
        where b.team_id = m.team_id and b.id = m.broadcast_id and b.state = 'paused'
          and b.state_reason in ('team_bounces', 'team_complaints'))))`,
  ramp: sql.fragment`(
    select json_build_object('name', r.name, 'limit', r.day_limit) from accepted_emails e
      join domains d on d.team_id = e.team_id and d.id = e.domain_id
      join teams t on t.id = d.team_id and not t.test
      join domain_ramps r on r.name = d.name and r.state = 'on' and r.used >= r.day_limit
        and r.day = (service_time() at time zone 'UTC')::date
    where m.broadcast_id is not null and e.team_id = m.team_id and e.id = m.id)`,
  given_up_as: null,
  sender_of: sql.fragment`null::text`,
  customers: isCustomers,
  broadcast: sql.fragment`broadcast_id`,
  refused: sql.fragment`(status = 'bounced' and provider_message_id is null and not exists (
    select from email_events v
    where v.team_id = m.team_id and v.email_id = m.id
      and v.kind in ('sent', 'delivered', 'unknown')))`,
  timed_out: sql.fragment`(status = 'bounced' and provider_message_id is null and (
    select bool_and(starts_with(v.detail, ${RETRIES_ENDED})) from email_events v
    where v.team_id = m.team_id and v.email_id = m.id and v.kind in ('sent', 'delivered', 'unknown', 'bounced')
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)))`,
  // A template without variables has no content to purge.
  emptied: sql.fragment`exists (
    select from accepted_emails e
    where e.team_id = m.team_id and e.id = m.id and (
      e.html = '' or ${ERASED} = all(e.to_emails) or e.variables::text = '{}' and exists (
        select from template_versions v
        where v.team_id = e.team_id and v.id = e.template_version_id and v.slots <> '{}')))`,
  findInTeam: ({ team, uuids, texts }) => sql.fragment`
    select id from accepted_emails
    where team_id = ${team} and (id = ${anyUuid(uuids)} or idempotency_key = ${anyText(texts)}
      or http_request_id = ${anyText(texts)})
    union all
    select id from email_states where team_id = ${team} and provider_message_id = ${anyText(texts)}`,
  findAnywhere: ({ uuids, texts }) => sql.fragment`
    select team_id, id from accepted_emails where id = ${anyUuid(uuids)}
    union select team_id, id from email_states where provider_message_id = ${anyText(texts)}
    union select team_id, id from accepted_emails where http_request_id = ${anyText(texts)}
    union select team_id, id from accepted_emails where idempotency_key = ${anyText(texts)}`,
  to_numbers: null,
}

/** Emails of broadcasts have their own queue, so that single emails go first. */
export const BROADCAST: Channel<'deliver-broadcast'> = {
  ...EMAIL,
  title: 'Broadcast email',
  job: 'deliver-broadcast',
}

/** Emails of test teams, including broadcasts: the same rows, but no provider. */
export const TEST_EMAIL: Channel<'deliver-test'> = {
  ...EMAIL,
  title: 'Simulated email',
  job: 'deliver-test',
  test: true,
  payload: {
    of: ({ team_id, id }) => ({ team_id, email_id: id, test: true }),
    ref: ({ team_id, email_id }) => ({ team_id, id: email_id }),
  },
}
