/** Reads why emails bounced: a bounded number of emails by their own index, and the events of each by its key. */
import { type FragmentSqlToken, sql } from 'slonik'
import { type InferType, string } from 'yup'
import { EMAIL } from '../../channels/email.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { firstIdAt } from '../../validation/ids.ts'

const bounceRow = row({ kind: string(), detail: string() })
export type Bounce = InferType<typeof bounceRow>

/** Selects the last rejection of each email, or that its recipients are suppressed. */
const bounces = (tx: Tx, teamId: string, emails: FragmentSqlToken) =>
  tx.any(sql.type(bounceRow)`
    select b.kind, b.detail from (${emails}) e
    cross join lateral (
      select kind, detail from email_events
      where team_id = ${teamId} and email_id = e.id and kind in ('bounced', 'suppressed')
      order by kind, occurred_at desc limit 1) b`)

/** Returns the causes of the newest `most` bounced emails of a team since a time. */
export const bouncesOfTeam = (tx: Tx, teamId: string, { since, most }: { since: Date; most: number }) =>
  bounces(
    tx,
    teamId,
    sql.fragment`
      select id from email_states
      where team_id = ${teamId} and rare_status = 'bounced' and id >= ${firstIdAt(since)} and ${EMAIL.customers}
      order by id desc limit ${most}`,
  )

/** Returns the causes of bounced emails of a broadcast, up to `most`. */
export const bouncesOfBroadcast = (
  tx: Tx,
  { team_id, id }: { team_id: string; id: string },
  { most }: { most: number },
) =>
  bounces(
    tx,
    team_id,
    sql.fragment`
      select id from email_states
      where team_id = ${team_id} and broadcast_id = ${id} and broadcast_status = 'bounced' limit ${most}`,
  )
