/** Queries for the reasons why a team's messages wait, for the overview page. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import type { Channel } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import { gaveUp } from './requeue.sql.ts'

/** Timeline entries that explain why a message hasn't been sent. */
export const DELAY_EVENTS = ['deferred', 'unknown', 'gave_up', 'held'] as const
/** Entries about the message itself. `held` is about our own configuration, and for operators only. */
const OWN_DELAY_EVENTS = DELAY_EVENTS.filter((kind) => kind !== 'held')

const longWaitRow = row({
  waiting: number(),
  given_up: number(),
  /** The most frequent last response, or null. */
  reason: string().nullable(),
})

/**
 * True if a row `m` waits as intended: bulk email of its team is paused, its domain is ramping up, its broadcast is
 * paused, or its broadcast is rate-limited and no provider has rejected it.
 */
const isMeantToWait = ({ broadcast, events, message, bulk_pause, ramp }: Channel) => sql.fragment`
  (${bulk_pause ?? sql.fragment`null::json`} is not null or ${ramp ?? sql.fragment`null::json`} is not null or exists (
    select from broadcasts b
    where b.team_id = m.team_id and b.id = ${broadcast} and (b.state = 'paused' or b.rate_per_minute is not null)
      and not exists (
        select from ${events} v
        where v.team_id = m.team_id and v.${message} = m.id
          and (v.kind = 'gave_up' or b.state <> 'paused' and v.kind = any(${sql.array(DELAY_EVENTS, 'text')})))))`

/**
 * Counts a team's messages that have waited since `before` although they shouldn't, how many have failed, and the
 * most frequent last response. Reads the oldest `most`, without internal email. `operator`: include responses about
 * our configuration.
 */
export async function longWaits(
  tx: Tx,
  teamId: string,
  { channel, before, most, operator }: { channel: Channel; before: Date; most: number; operator: boolean },
) {
  const { rows, events, message, customers } = channel
  const kinds = operator ? DELAY_EVENTS : OWN_DELAY_EVENTS
  return tx.one(sql.type(longWaitRow)`
    select count(*) as waiting, count(*) filter (where ${gaveUp(channel)}) as given_up,
      mode() within group (order by refusal.detail) as reason
    from (
      select team_id, id, created_at, tries_from from ${rows} m
      where team_id = ${teamId} and unfinished and greatest(created_at, scheduled_at) < ${sql.timestamp(before)}
        and ${customers}
        and not ${isMeantToWait(channel)}
      order by id limit ${most}) m
    left join lateral (
      select detail from ${events} v
      where v.team_id = m.team_id and v.${message} = m.id and v.kind = any(${sql.array(kinds, 'text')})
      order by occurred_at desc limit 1) refusal on true`)
}
