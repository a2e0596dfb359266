/** Applies Meta's events about accounts and numbers. Events of other accounts are dropped. */
import { APPLIED, type EventResult, ignored } from '../../delivery/reports/event-result.ts'
import type { Tx } from '../../postgres/pool.ts'
import { type AccountEvent, ownAccounts, storeAccountEvents } from './account-events.sql.ts'

/** @returns a result for each. */
export async function applyAccountEvents(tx: Tx, events: readonly AccountEvent[]): Promise<EventResult[]> {
  const own = await ownAccounts(tx)
  const isOwn = ({ account_id }: AccountEvent): boolean => own === null || own.has(account_id)
  const kept = events.filter(isOwn)
  if (kept.length > 0) await storeAccountEvents(tx, kept)
  return events.map((event) => (isOwn(event) ? APPLIED : ignored('the account is not ours')))
}
