/** Emails that wait with their jobs, made by two statements: a flood that is over before anything is measured. */
import type { TestTeam } from '../support/service.ts'
import type { World } from './world.ts'

/** Queues so many emails of a team, due now or in an hour; each place in line is a team's next. */
export async function fillQueue(
  { sql }: World,
  { id, domain_id }: TestTeam,
  count: number,
  due: 'now' | 'in an hour',
): Promise<void> {
  await sql(
    `insert into emails (team_id, id, domain_id, from_address, to_emails, subject, html, size_kb, tags, status,
      created_at, body_text, reply_to)
    select $1, overlay(gen_random_uuid()::text placing '0192' from 1 for 4)::uuid, $2, 'hello@example.com',
      array['person' || n || '@example.org'], 'A flood', '<p>Hello</p>', 0.01, '[]', 'queued', now(), null, ''
    from generate_series(1, $3::int) n`,
    [id, domain_id, count],
  )
  await sql(
    `insert into pgboss.job (name, id, data, priority, start_after, retry_limit, retry_delay, expire_seconds,
      deletion_seconds, keep_until, policy, heartbeat_seconds)
    select q.name, e.id, jsonb_build_object('team_id', e.team_id, 'email_id', e.id),
      -(row_number() over (order by e.id))::int, now() + $2::interval, q.retry_limit, q.retry_delay,
      q.expire_seconds, q.deletion_seconds, now() + interval '30 days', q.policy, q.heartbeat_seconds
    from emails e, pgboss.queue q where e.team_id = $1 and q.name = 'deliver-email'`,
    [id, due === 'now' ? '0' : '1 hour'],
  )
  await sql(
    `update allowances set email_place = $2::int, emails_used = emails_used + $2::int where team_id = $1`,
    [id, count],
  )
}

/** Takes away what still waits of a team, so that nothing of it is to be settled. */
export async function emptyQueue({ sql }: World, { id }: TestTeam): Promise<void> {
  await sql(
    `delete from pgboss.job where name like 'deliver-%' and state < 'active' and data ->> 'team_id' = $1`,
    [id],
  )
}
