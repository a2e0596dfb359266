/** Rows of opt-outs from marketing. */
import { sql } from 'slonik'
import { boolean, string } from 'yup'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'

export type OptOutChange = { team_id: string; recipient: string; is_out: boolean; at: Date; by: string }

const CHANGE = { team_id: 'uuid', recipient: 'text', is_out: 'bool', at: 'timestamptz', by: 'text' }

const changedRow = row({
  team_id: string(),
  recipient: string(),
  is_out: boolean(),
  at: string(),
  by: string(),
  /** True if the recipient was opted out before. */
  was_out: boolean(),
  has_listeners: boolean(),
})

/**
 * Stores changes. The latest change of a recipient counts. Within one second, the opt-out does. The count makes
 * PostgreSQL read `before` first, because a locking read skips rows changed by its own statement.
 * @returns the stored changes.
 */
export const storeOptOuts = (tx: Tx, changes: readonly OptOutChange[]) =>
  tx.any(sql.type(changedRow)`
    with given as (
      select distinct on (team_id, recipient) * from ${rowsOf('c', CHANGE, changes)}
      order by team_id, recipient, at desc, is_out desc
    ), before as (
      select o.* from given g join whatsapp_opt_outs o using (team_id, recipient)
      order by o.team_id, o.recipient for update of o
    ), stored as (
      insert into whatsapp_opt_outs as o (team_id, recipient, is_out, at, by)
      select g.team_id, g.recipient, g.is_out, g.at, g.by from given g join teams t on t.id = g.team_id
      where (select count(*) from before) >= 0
      order by g.team_id, g.recipient
      on conflict (team_id, recipient) do update set is_out = excluded.is_out, at = excluded.at, by = excluded.by
      where o.at < excluded.at or (o.at = excluded.at and excluded.is_out and not o.is_out)
      returning *
    )
    select s.team_id, s.recipient, s.is_out, s.at, s.by, coalesce(b.is_out, false) as was_out,
      ${hasListeners(sql.fragment`s.team_id`)} as has_listeners
    from stored s left join before b on b.team_id = s.team_id and b.recipient = s.recipient`)

const outRow = row({ team_id: string(), recipient: string() })

/** Returns the recipients that have opted out, each as passed in. */
export const optedOut = (tx: Tx, asked: readonly { team_id: string; recipient: string }[]) =>
  tx.any(sql.prepared('whatsapp_opted_out', outRow)`
    select o.team_id, o.recipient
    from ${rowsOf('a', { team_id: 'uuid', recipient: 'text' }, asked)}
      cross join lateral (
        select team_id, recipient from whatsapp_opt_outs
        where team_id = a.team_id and recipient = a.recipient and is_out offset 0) o`)

const listedRow = row({ to: string(), at: string(), by: string() })

/** Returns a team's opt-outs, newest first, without those of erased numbers. */
export const optOutsOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(listedRow)`
    select recipient as "to", at, by from whatsapp_opt_outs
    where team_id = ${teamId} and is_out and recipient like '+%' order by at desc, recipient`)

const erasedRow = row({ exists: boolean() })

/** True if an erased number of a team is opted out. */
export const hasErasedOptOut = (tx: Tx, teamId: string) =>
  tx.oneFirst(sql.type(erasedRow)`
    select exists (
      select from whatsapp_opt_outs where team_id = ${teamId} and is_out and recipient not like '+%') as exists`)

const teamRow = row({ team_id: string(), recipient: string() })

/** Returns the team and recipient of the message that Meta accepted with this ID from this number, if any. */
export const messageRepliedTo = (tx: Tx, { id, number }: { id: string; number: string | null }) =>
  tx.any(sql.type(teamRow)`
    select team_id, recipient from whatsapp_messages
    where provider_message_id = ${id} and ${isFrom(number)}`)

/** Returns the teams that wrote to one of these forms of a number since a time, with the form of the last message. */
export const teamsThatWrote = (
  tx: Tx,
  { recipients, number, since }: { recipients: readonly string[]; number: string | null; since: Date },
) =>
  tx.any(sql.type(teamRow)`
    select t.id as team_id, m.recipient
    from teams t cross join lateral (
      select recipient from whatsapp_messages
      where team_id = t.id and recipient = any(${sql.array(recipients, 'text')})
        and accepted_at >= ${sql.timestamp(since)} and ${isFrom(number)}
      order by id desc limit 1) m
    where not t.test`)

/** True if a number is the default one, or may be because its ID is unknown and no other number has this one. */
const isDefault = (number: string | null) => sql.fragment`coalesce(
    (select phone_number_id = ${number} from whatsapp_numbers where name = 'default'),
    not exists (select from whatsapp_numbers where phone_number_id = ${number}))`

/** True if a message was sent from a number, or the number is unknown. */
const isFrom = (number: string | null) => sql.fragment`
  (${number}::text is null or coalesce(phone_number_id = ${number}, ${isDefault(number)}))`

/** Returns the teams that send from a number, at most two. */
export const teamsOfNumber = (tx: Tx, number: string | null) =>
  tx.any(sql.type(idRow)`
    select t.id from teams t left join whatsapp_numbers n on n.name = coalesce(t.whatsapp_number, 'default')
    where not t.test and (${number}::text is null or coalesce(n.phone_number_id = ${number}, ${isDefault(number)}))
    order by t.id limit 2`)
