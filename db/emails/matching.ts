/**
 * Counts the emails of a team that match a filter, and requeues or deletes those that were counted, in lots of a
 * transaction each.
 * Promises: each lot has its line in the audit trail.
 * No lot holds locks for long. What is changed lies between the newest and the oldest that were counted, so
 * emails that arrived since are left alone. Counting ends at `most` emails or when the time is up, and says so.
 */
import { type Actor, record } from '../audit/record.ts'
import { EMAIL } from '../channels/channels.sql.ts'
import { requeueMessages } from '../delivery/requeue.ts'
import type { At, Database, Tx } from '../postgres/pool.ts'
import { serviceTime } from '../postgres/time.sql.ts'
import type { Producer } from '../queue/boss.ts'
import type { EmailCriteria } from './find.sql.ts'
import { criteriaOf, type EmailFilter } from './find.ts'
import { countMatching, idsMatching, idsToRequeue } from './matching.sql.ts'
import { removeEmails } from './remove.ts'
import { needsLooking, timeToLook } from './search.ts'
import { stretches } from './stretches.ts'

type Filter = Omit<EmailFilter, 'team_id'>
/** Which emails to change: those that match and lie between these, the newest `most`. */
type Wanted = {
  filter: Filter
  between: Between
  most: number /** The filter in the audit trail. */
  words: string
}
type Acting = { database: Database; now: Date; actor: Actor }

const LOT = 500

/** For how long to look through further emails, in milliseconds. */
const PATIENCE = 1_000

export type Between = NonNullable<EmailCriteria['between']>

export type Counted = {
  count: number
  /** The first and the last of those that were counted; null when nothing matches. */
  between: Between | null
  /** Set when the time was up: older emails were not looked at. */
  lookedTo: Date | null
}

/**
 * The newest emails that match, counted up to `most`, in stretches while the time lasts.
 * @param since no email of the team is older. @throws Refusal bad_request as `findEmails`.
 */
export async function countEmails(
  { tx, now, since }: At & { since: Date },
  teamId: string,
  { filter, most }: { filter: Filter; most: number },
  patience = PATIENCE,
): Promise<Counted> {
  const counted: Counted = { count: 0, between: null, lookedTo: null }
  const time = timeToLook(filter, { since, now })
  for (const part of needsLooking(filter) ? stretches(time, patience) : [{ from: filter.from }]) {
    const criteria = criteriaOf({ ...filter, ...part })
    const { count, newest, oldest } = await countMatching(tx, teamId, criteria, most - counted.count)
    counted.count += count
    if (newest !== null && oldest !== null)
      counted.between = { newest: counted.between?.newest ?? newest, oldest }
    const isAll = counted.count === most || !needsLooking(filter) || Number(part.from) <= time.first
    counted.lookedTo = isAll ? null : (part.from ?? null)
    if (isAll) break
  }
  return counted
}

/** Does something with those that were counted, lot by lot, up to `most`. @returns what the lots add up to. */
async function inLots(
  { database, actor }: Acting,
  teamId: string,
  { filter, between, most, action, words }: Wanted & { action: string },
  work: (at: At, ids: readonly string[]) => Promise<number>,
): Promise<number> {
  const criteria = { ...criteriaOf(filter), between }
  let done = 0
  let seen = 0
  for (let before: string | undefined; seen < most; ) {
    const ids = await idsMatching(database, teamId, criteria, { before, limit: Math.min(LOT, most - seen) })
    if (ids.length === 0) break
    done += await database.transaction(async (tx) => {
      const now = await serviceTime(tx)
      const changed = await work({ tx, now }, ids)
      const deed = { team_id: teamId, action, subject: `${changed} emails`, detail: words }
      if (changed > 0) await record({ tx, now, actor }, deed)
      return changed
    })
    seen += ids.length
    before = ids.at(-1)
  }
  return done
}

/** Requeues those that no provider has taken; with `force` those too that were refused. @returns how many. */
export const requeueMatching = async (
  deps: Acting & { queue: Pick<Producer, 'reenqueue'> },
  teamId: string,
  { force, ...wanted }: Wanted & { force: boolean },
): Promise<number> =>
  inLots(deps, teamId, { ...wanted, action: 'email.requeue' }, async (at, ids) => {
    const refs = ids.map((id) => ({ team_id: teamId, id }))
    return (await requeueMessages({ ...at, queue: deps.queue }, EMAIL, refs, { by: 'person', force })).length
  })

/** The emails of a team that match and wait to be taken by a provider; with `force` those too that were refused. */
export const undeliveredEmails = async (
  tx: Tx,
  teamId: string,
  { force, ...filter }: Filter & { force: boolean },
): Promise<readonly string[]> => idsToRequeue(tx, teamId, criteriaOf(filter), force)

/** Deletes them with their events; those of this period free their places in the allowance. @returns how many. */
export const deleteMatching = async (deps: Acting, teamId: string, wanted: Wanted): Promise<number> =>
  inLots(deps, teamId, { ...wanted, action: 'email.delete' }, (at, ids) => removeEmails(at, teamId, ids))
