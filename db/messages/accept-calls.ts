/**
 * Accepts calls of any channel in order, in one transaction. The accounts must be locked, because they store the
 * position of each team's last job (DECISIONS: Lanes).
 */
import { type Account, buildCharges } from '../accounts/teams/limits.ts'
import type { OwnNumber } from '../accounts/teams/teams.sql.ts'
import { deliveryFrom } from '../channels/channels.sql.ts'
import { queueOf } from '../channels/queues.ts'
import { RequestError } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import { positionsAfter } from '../queue/fair-queue.ts'
import { type SharedJob, toGroup } from '../queue/jobs.ts'
import type { Placed, Producer } from '../queue/producer.ts'

/** The calls that are accepted together, by team. The teams' accounts are locked. */
type Batches<B extends { account: Account } = { account: Account }> = ReadonlyMap<string, B>

/** The messages created from one item, in a lane of its team. */
type Made<M> = { team_id: string; line: keyof Account['places']; messages: readonly M[] }
type Message = { team_id: string; id: string; due_at: string | null }
type Sending<M> = {
  also: (job: SharedJob, message: M) => object
  numberOf: (teamId: string) => OwnNumber | null
}

/** The outcomes of a call's items, in order. An error if the call was rejected, null if it was skipped. */
export type CallEnd<O> = O[] | RequestError | null

/** Accepts calls and stores the new messages. @param take returns an error to reject all items of a call. */
export async function acceptCalls<C extends { team_id: string }, B extends { account: Account }, M, O>(
  calls: readonly C[],
  batches: Batches<B>,
  steps: {
    take: (call: C, batch: B) => { made: M[]; outcomes: O[] } | RequestError
    commit: (made: readonly M[]) => Promise<void>
  },
): Promise<CallEnd<O>[]> {
  const ends = calls.map((call) => {
    const batch = batches.get(call.team_id)
    return batch ? steps.take(call, batch) : null
  })
  const made = ends.flatMap((end) => (end === null || end instanceof RequestError ? [] : end.made))
  if (made.length > 0) await steps.commit(made)
  return ends.map((end) => (end === null || end instanceof RequestError ? end : end.outcomes))
}

/** Returns the outcomes of the only call. @throws RequestError if the call was rejected. */
export function onlyEnd<O>([end]: readonly CallEnd<O>[]): O[] {
  if (!end) throw new Error('a waiting call was skipped')
  if (end instanceof RequestError) throw end
  return end
}

/** A team's account. @throws Error when it is not locked. */
function accountIn(batches: Batches, teamId: string): Account {
  const batch = batches.get(teamId)
  if (!batch) throw new Error(`the account of ${teamId} is not locked`)
  return batch.account
}

/**
 * Returns the parts of the statement that store the charges and the jobs of due messages. Scheduled messages
 * have no job.
 * @param also extra data for a message's job.
 * @param numberOf the team's own number. Null: the default one, or a channel without numbers.
 * @returns `due`: the number of jobs.
 */
export async function chargesAndJobs<M extends Message>(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'storing' | 'reached'> },
  made: readonly Made<M>[],
  batches: Batches,
  { also, numberOf }: Sending<M>,
) {
  const accounts = new Map(made.map(({ team_id }) => [team_id, accountIn(batches, team_id)]))
  const wanting = made
    .filter(({ messages }) => messages.every(({ due_at }) => due_at === null))
    .map((one) => ({ ...one, account: accountIn(batches, one.team_id), number: numberOf(one.team_id) }))
  const placed: Placed[] = []
  for (const [job, own] of Map.groupBy(wanting, ({ line, account: { test }, number }) =>
    queueOf(line, { test, number }),
  )) {
    const { payload } = deliveryFrom(job)
    const payloads: object[] = []
    const places: number[] = []
    for (const { line, account, number, messages } of own) {
      const sender = number?.phone_number_id ?? null
      const next = messages.map((message) => ({
        ...payload.of({ ...message, sender }),
        ...also(job, message),
      }))
      const reached = await queue.reached(tx, job, next[0] ? toGroup(job, next[0]) : null)
      const given = positionsAfter(account.places[line], reached, next.length)
      account.places[line] = given.at(-1) ?? account.places[line]
      payloads.push(...next)
      places.push(...given)
    }
    // Made by the queue's own rule.
    placed.push({ job, payloads, places } as Placed)
  }
  const due = placed.flatMap(({ payloads }) => payloads as readonly object[]).length
  return { charge: buildCharges(accounts), jobs: queue.storing(tx, placed), due }
}
