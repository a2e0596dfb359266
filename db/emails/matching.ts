/**
 * Requeues or deletes all emails of a team that match a filter, in lots of a transaction each.
 * Promises: no lot holds locks for long. Emails that arrive meanwhile are left alone. A call takes `most` emails at
 * most, so that a person waits for seconds, not minutes.
 */
import { EMAIL } from '../delivery/channel.sql.ts'
import { requeueMessages } from '../delivery/requeue.ts'
import type { At, Database, Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { criteriaOf, type EmailFilter } from './find.ts'
import { countMatching, idsMatching } from './matching.sql.ts'
import { removeEmails } from './remove.ts'

type Filter = Omit<EmailFilter, 'team_id'>

const LOT = 500

/** How many match, counted up to `most`. @throws Refusal bad_request as `findEmails`. */
export const countEmails = async (tx: Tx, teamId: string, filter: Filter, most: number): Promise<number> =>
  countMatching(tx, teamId, criteriaOf(filter), most)

/** Does something with up to `most` emails that match, lot by lot. @returns what the lots add up to. */
async function inLots(
  { database, now }: { database: Database; now: Date },
  teamId: string,
  { filter, most }: { filter: Filter; most: number },
  work: (at: At, ids: readonly string[]) => Promise<number>,
): Promise<number> {
  const criteria = criteriaOf({ ...filter, to: filter.to ?? now })
  let done = 0
  let seen = 0
  for (let before: string | undefined; seen < most; ) {
    const ids = await idsMatching(database, teamId, criteria, { before, limit: Math.min(LOT, most - seen) })
    if (ids.length === 0) break
    done += await database.transaction((tx) => work({ tx, now }, ids))
    seen += ids.length
    before = ids.at(-1)
  }
  return done
}

/** Requeues those that no provider has taken; with `force` those too that were refused. @returns how many. */
export const requeueMatching = async (
  deps: { database: Database; queue: Pick<Producer, 'reenqueue'>; now: Date },
  teamId: string,
  { force, ...wanted }: { filter: Filter; most: number; force: boolean },
): Promise<number> =>
  inLots(deps, teamId, wanted, async (at, ids) => {
    const refs = ids.map((id) => ({ team_id: teamId, id }))
    return (await requeueMessages({ ...at, queue: deps.queue }, EMAIL, refs, force)).length
  })

/** Deletes them with their events; those of this period free their places in the allowance. @returns how many. */
export const deleteMatching = async (
  deps: { database: Database; now: Date },
  teamId: string,
  wanted: { filter: Filter; most: number },
): Promise<number> => inLots(deps, teamId, wanted, (at, ids) => removeEmails(at, teamId, ids))
