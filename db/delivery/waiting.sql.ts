/** What a team's messages wait for, over all of them: for the page that says what needs a person. */
import { sql } from 'slonik'
import { number, string } from 'yup'
import type { Channel } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'
import { gaveUp } from './requeue.sql.ts'

/** Entries of a timeline that say why a message is not gone yet. */
export const REFUSALS = ['deferred', 'unknown', 'gave_up', 'held'] as const
/** Those of them whose words are about a message. What holds one back is about our own set-up: for operators alone. */
const OWN_REFUSALS = REFUSALS.filter((kind) => kind !== 'held')

const longWaitRow = row({
  waiting: number(),
  given_up: number(),
  /** The last refusal of most of them; null when none was refused. */
  reason: string().nullable(),
})

/**
 * True if a row `m` waits as it should: bulk email of its team is paused, its domain is ramped, or its broadcast is
 * paused, or paced and nothing has refused it.
 */
const isMeantToWait = ({ broadcast, events, message, bulk_pause, ramp }: Channel) => sql.fragment`
  (${bulk_pause ?? sql.fragment`null::json`} is not null or ${ramp ?? sql.fragment`null::json`} is not null or exists (
    select from broadcasts b
    where b.team_id = m.team_id and b.id = ${broadcast} and (b.state = 'paused' or b.rate_per_minute is not null)
      and not exists (
        select from ${events} v
        where v.team_id = m.team_id and v.${message} = m.id
          and (v.kind = 'gave_up' or b.state <> 'paused' and v.kind = any(${sql.array(REFUSALS, 'text')})))))`

/**
 * How many of a team's messages have been waiting to be delivered since `before` that should not, how many of them
 * were given up, and what most of them were refused with last; of the oldest `most`, internal mail apart. `operator`:
 * with words about our set-up.
 */
export async function longWaits(
  tx: Tx,
  teamId: string,
  { channel, before, most, operator }: { channel: Channel; before: Date; most: number; operator: boolean },
) {
  const { rows, events, message, customers } = channel
  const kinds = operator ? REFUSALS : OWN_REFUSALS
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
