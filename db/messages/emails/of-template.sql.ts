/** Counts the statuses of the newest emails of a template: a bounded number, by their own index. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import { EMAIL_LADDER } from '../../channels/email.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'

const statusCountRow = row({ status: string().oneOf(EMAIL_LADDER), count: number() })

/** Counts emails by status. @param most how many emails are counted at most, the newest. */
export const countsOfTemplate = (
  tx: Tx,
  { team_id, id }: { team_id: string; id: string },
  { since, most }: { since: Date; most: number },
) =>
  tx.any(sql.type(statusCountRow)`
    select s.status, count(*) as count
    from (
      select id from accepted_emails
      where team_id = ${team_id} and template_id = ${id} and id >= ${firstIdAt(since)}
      order by id desc limit ${most}) e
    cross join lateral (select status from email_states where team_id = ${team_id} and id = e.id limit 1) s
    group by s.status`)

const usageRow = row({ id: string(), count: number(), last_at: string().nullable() })

/** Counts the emails of templates since a time, at most `most` of each, and finds when each was last used. */
export const usageOfTemplates = (
  tx: Tx,
  teamId: string,
  ids: readonly string[],
  { since, most }: { since: Date; most: number },
) =>
  tx.any(sql.type(usageRow)`
    select t.id, u.count, l.created_at as last_at
    from unnest(${sql.array(ids, 'uuid')}) as t (id)
    cross join lateral (
      select count(*) as count from (
        select 1 from accepted_emails
        where team_id = ${teamId} and template_id = t.id and id >= ${firstIdAt(since)}
        limit ${most}) e) u
    left join lateral (
      select created_at from accepted_emails
      where team_id = ${teamId} and template_id = t.id order by id desc limit 1) l on true`)
