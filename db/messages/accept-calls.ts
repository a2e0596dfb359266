/**
 * How calls of any channel are accepted: in order, each as if it came alone; what they make is stored together or not
 * at all, with the charges for it and its jobs, each behind its team's others of its line (DECISIONS: Lanes).
 * Must be called while the accounts are locked, which keep where each team's last job stands.
 */
import { type Account, chargesOf } from '../accounts/teams/limits.ts'
import { deliveryFrom } from '../channels/channels.sql.ts'
import { queueOf } from '../channels/queues.ts'
import { RequestError } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import { placesAfter } from '../queue/fair-queue.ts'
import { groupOf, type SharedJob } from '../queue/jobs.ts'
import type { Placed, Producer } from '../queue/producer.ts'

/** The calls of one team that are taken together, by team: their accounts are locked. */
type Batches<B extends { account: Account } = { account: Account }> = ReadonlyMap<string, B>

/** What was made of one item, in a line of its team. */
type Made<M> = { team_id: string; line: keyof Account['places']; messages: readonly M[] }
type Message = { team_id: string; id: string; due_at: string | null }

/** What came of a call: its items' outcomes in order; a refusal when it was not taken; null when it was passed over. */
export type CallEnd<O> = O[] | RequestError | null

/** Takes calls, and stores what they have made, if anything. @param take the refusal is of the whole call. */
export async function acceptCalls<C extends { team_id: string }, B extends { account: Account }, M, O>(
  calls: readonly C[],
  batches: Batches<B>,
  {
    take,
    commit,
  }: {
    take: (call: C, batch: B) => { made: M[]; outcomes: O[] } | RequestError
    commit: (made: readonly M[]) => Promise<void>
  },
): Promise<CallEnd<O>[]> {
  const ends = calls.map((call) => {
    const batch = batches.get(call.team_id)
    return batch ? take(call, batch) : null
  })
  const made = ends.flatMap((end) => (end === null || end instanceof RequestError ? [] : end.made))
  if (made.length > 0) await commit(made)
  return ends.map((end) => (end === null || end instanceof RequestError ? end : end.outcomes))
}

/** What came of the one call that waited for its account. @throws RequestError when it was not taken. */
export function onlyEnd<O>([end]: readonly CallEnd<O>[]): O[] {
  if (!end) throw new Error('a call that waits is not passed over')
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
 * Parts of the statement that stores what was made: the charges for it, and the jobs of what is due; what waits for its
 * time has none. @param also what a message's job says besides. @returns `due`: how many jobs there are.
 */
export async function chargesAndJobs<M extends Message>(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'storing' | 'reached'> },
  made: readonly Made<M>[],
  batches: Batches,
  also: (job: SharedJob, message: M) => object = () => ({}),
) {
  const accounts = new Map(made.map(({ team_id }) => [team_id, accountIn(batches, team_id)]))
  const wanting = made
    .filter(({ messages }) => messages.every(({ due_at }) => due_at === null))
    .map((one) => ({ ...one, account: accountIn(batches, one.team_id) }))
  const placed: Placed[] = []
  for (const [job, own] of Map.groupBy(wanting, ({ line, account }) => queueOf(line, account))) {
    const { payload } = deliveryFrom(job)
    const payloads: object[] = []
    const places: number[] = []
    for (const { line, account, messages } of own) {
      const sender = account.number?.phone_number_id ?? null
      const next = messages.map((message) => ({
        ...payload.of({ ...message, sender }),
        ...also(job, message),
      }))
      const reached = await queue.reached(tx, job, next[0] ? groupOf(job, next[0]) : null)
      const given = placesAfter(account.places[line], reached, next.length)
      account.places[line] = given.at(-1) ?? account.places[line]
      payloads.push(...next)
      places.push(...given)
    }
    // Made by the queue's own rule.
    placed.push({ job, payloads, places } as Placed)
  }
  const due = placed.flatMap(({ payloads }) => payloads as readonly object[]).length
  return { charge: chargesOf(accounts), jobs: queue.storing(tx, placed), due }
}
