/**
 * The queue of what is accepted, and its place in it: behind its team's others of the same line (DECISIONS: Lines of a
 * team). Must be called while the accounts are locked, which keep where each team's last job stands.
 */
import type { Account } from '../accounts/teams/limits.ts'
import { queueOf } from '../channels/queues.ts'
import type { Tx } from '../postgres/pool.ts'
import { placesAfter } from '../queue/fair-queue.ts'
import type { Producer } from '../queue/producer.ts'

/** A team's account. @throws Error when it is not locked. */
export function accountIn(batches: ReadonlyMap<string, { account: Account }>, teamId: string): Account {
  const batch = batches.get(teamId)
  if (!batch) throw new Error(`the account of ${teamId} is not locked`)
  return batch.account
}

type Line = keyof Account['places']

/** One that wants places: `count` of them, in a line of its team. */
type Wanting<L extends Line> = { line: L; account: Account; count: number }

/** Gives places. @returns for each queue those that go there, in order, and their places. */
export async function givePlaces<L extends Line, W>(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'reached'> },
  wanting: readonly (W & Wanting<L>)[],
): Promise<{ job: ReturnType<typeof queueOf<L>>; own: (W & Wanting<L>)[]; places: number[] }[]> {
  const given = []
  for (const [job, own] of Map.groupBy(wanting, ({ line, account }) => queueOf<L>(line, account))) {
    const reached = await queue.reached(tx, job)
    const places = own.flatMap(({ line, account, count }) => {
      const next = placesAfter(account.places[line], reached, count)
      account.places[line] = next.at(-1) ?? account.places[line]
      return next
    })
    given.push({ job, own, places })
  }
  return given
}
