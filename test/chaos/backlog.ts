/**
 * Creates waiting emails with their jobs in two statements, so that a flood is complete before the
 * measurement.
 */
import { sql } from 'slonik'
import { insertEmailRows } from '../support/email-rows.ts'
import type { TestTeam } from '../support/service.ts'
import type { World } from './world.ts'

/** Queues a number of emails of a team, due now or in an hour. Each gets the team's next queue position. */
export async function fillQueue(
  { sql: run, database }: World,
  { id, domain_id }: TestTeam,
  count: number,
  due: 'now' | 'in an hour',
): Promise<void> {
  const rows = sql.fragment`
    select ${id} as team_id, overlay(gen_random_uuid()::text placing '0192' from 1 for 4) as id,
      ${domain_id} as domain_id, 'hello@example.com' as from_address, array['person' || n || '@example.org'] as to_emails,
      'A flood' as subject, '<p>Hello</p>' as html, 0.01 as size_kb, '[]'::json as tags, 'queued' as status,
      now() as created_at, '' as reply_to
    from generate_series(1, ${count}::int) n`
  await insertEmailRows({ database }, rows)
  await run(
    `insert into pgboss.job (name, id, data, priority, start_after, retry_limit, retry_delay, expire_seconds,
      deletion_seconds, keep_until, policy, heartbeat_seconds)
    select q.name, e.id, jsonb_build_object('team_id', e.team_id, 'email_id', e.id),
      -(row_number() over (order by e.id))::int, now() + $2::interval, q.retry_limit, q.retry_delay,
      q.expire_seconds, q.deletion_seconds, now() + interval '30 days', q.policy, q.heartbeat_seconds
    from emails e, pgboss.queue q where e.team_id = $1 and q.name = 'deliver-email'`,
    [id, due === 'now' ? '0' : '1 hour'],
  )
  await run(
    `update allowances set email_place = $2::int, emails_used = emails_used + $2::int where team_id = $1`,
    [id, count],
  )
}

/** Deletes a team's waiting delivery jobs, so that they don't delay what follows. */
export async function emptyQueue({ sql: run }: World, { id }: TestTeam): Promise<void> {
  await run(
    `delete from pgboss.job where name like 'deliver-%' and state < 'active' and data ->> 'team_id' = $1`,
    [id],
  )
}
