/** Rows of domain_ramps. Days are UTC days of the database's time. */
import { type FragmentSqlToken, sql } from 'slonik'
import { boolean, type InferType, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, nameRow, row, rowsOf } from '../../postgres/rows.ts'
import { HISTORY_DAYS, HISTORY_EMAILS } from './ramp.ts'

const today = sql.fragment`(service_time() at time zone 'UTC')::date`

const decisionRow = row({
  name: string(),
  state: string().oneOf(['on', 'off', 'ended']),
  limit: number(),
  factor: number(),
})
type Decision = InferType<typeof decisionRow>

const rampRow = decisionRow.concat(
  row({
    /** The emails, bounces and complaints of the day of `limit`. */
    used: number(),
    bounced: number(),
    complained: number(),
    is_today: boolean(),
    today: string(),
    seconds_left: number(),
  }),
)
export type RampRow = InferType<typeof rampRow>

const reports = (kind: string) => sql.fragment`(
  select count(*) from domain_ramp_reports p where p.name = r.name and p.day = r.day and p.kind = ${kind})::integer`

const columns = sql.fragment`
  name, state, day_limit as limit, factor, used, day = ${today} as is_today, ${today}::text as today, ${reports('bounced')} as bounced,
  ${reports('complained')} as complained,
  extract(epoch from ((${today} + 1)::timestamp at time zone 'UTC') - service_time())::float8 as seconds_left`

/** Returns the ramps of domain names. A name has none if no one has set or disabled its ramp. */
export const readRamps = (tx: Tx, names: readonly string[]) =>
  tx.any(sql.type(rampRow)`
    select ${columns}
    from domain_ramps r where name = any(${sql.array([...names], 'text')})`)

/** Returns the ramp of a domain name, or null if no one has set or disabled one. */
export const readRamp = async (tx: Tx, name: string): Promise<RampRow | null> =>
  (await readRamps(tx, [name]))[0] ?? null

/** Stores a ramp that starts today, replacing an earlier one. Emails sent today still count. */
export const setRamp = (tx: Tx, { name, state, limit, factor }: Decision) =>
  tx.query(sql.unsafe`
    insert into domain_ramps as r (name, state, day_limit, factor, day)
    values (${name}, ${state}, ${limit}, ${factor}, ${today})
    on conflict (name) do update set state = excluded.state, day_limit = excluded.day_limit,
      factor = excluded.factor, day = excluded.day, used = case when r.day = excluded.day then r.used else 0 end`)

/** Stores a decision unless there is one. */
export const decideRamp = (tx: Tx, { name, state, limit, factor }: Decision) =>
  tx.query(sql.unsafe`
    insert into domain_ramps (name, state, day_limit, factor, day)
    values (${name}, ${state}, ${limit}, ${factor}, ${today}) on conflict (name) do nothing`)

/** Locks an active ramp until the transaction ends. */
export const lockRamp = (tx: Tx, name: string) =>
  tx.maybeOne(sql.type(rampRow)`
    select ${columns} from domain_ramps r where name = ${name} and state = 'on' for no key update`)

/** An email that counts towards the limit of a domain name on a day. */
export type RampPlace = { name: string; day: string }

/**
 * Returns places whose emails weren't sent after all. Waits for an uncommitted change of a ramp, so that the change and
 * a deferral of an email at the same time see each other.
 * @param waiting the names of ramps that made emails wait. @returns the ramps without a limit at the moment.
 */
export async function returnPlaces(tx: Tx, unused: readonly RampPlace[], waiting: readonly string[]) {
  const names = [...waiting, ...unused.map(({ name }) => name)]
  const found = await tx.anyFirst(sql.type(nameRow)`
    with held as materialized (
      select name, state, day, used, day_limit from domain_ramps
      where name = any(${sql.array(names, 'text')}) order by name for no key update
    ), returned as (
      select name, day, count(*)::integer as count from ${rowsOf('p', { name: 'text', day: 'date' }, unused)}
      group by name, day
    ), left_over as (
      select held.*, greatest(0, used - coalesce(count, 0)) as still_used, count from held
      left join returned using (name, day)
    ), saved as (
      update domain_ramps r set used = still_used from left_over l where r.name = l.name and l.count is not null
    )
    select name from left_over
    where name = any(${sql.array([...waiting], 'text')})
      and (state <> 'on' or day <> ${today} or still_used < day_limit)`)
  return new Set(found)
}

export const saveRamp = (
  tx: Tx,
  { name, state, limit, used }: Pick<RampRow, 'name' | 'state' | 'limit' | 'used'>,
) =>
  tx.query(sql.unsafe`
    update domain_ramps set state = ${state}, day_limit = ${limit}, used = ${used}, day = ${today}
    where name = ${name}`)

/** Counts the emails of a domain name that the relay recently accepted, over all live teams, up to a limit. */
export const countHistory = (tx: Tx, name: string) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from (
      select from domains d join teams t on t.id = d.team_id and not t.test
        join accepted_emails e on e.team_id = d.team_id and e.domain_id = d.id
        join email_states s on s.team_id = e.team_id and s.id = e.id
      where d.name = ${name} and e.created_at > service_time() - ${HISTORY_DAYS}::int * interval '1 day'
        and s.provider_message_id is not null
      limit ${HISTORY_EMAILS}) counted`)

/** The name of the domain of an email `e` of a live team, if it is ramped. */
export const rampedName = (e: FragmentSqlToken): FragmentSqlToken => sql.fragment`
  select r.name from domains d join teams t on t.id = d.team_id and not t.test
    join domain_ramps r on r.name = d.name and r.state = 'on'
  where d.team_id = ${e}.team_id and d.id = ${e}.domain_id`
