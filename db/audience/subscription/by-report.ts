/**
 * Unsubscribes contacts whose relay reports that they have left: by its link, its list, or its page.
 * Reports come in any order: a suppressed contact stays so, and is unsubscribed once that ends. Contacts are locked by
 * the caller.
 */
import type { At } from '../../postgres/pool.ts'
import { leaveWhileSuppressed } from './subscription.sql.ts'
import { unsubscribe } from './subscription.ts'

/** @param identities of contacts that exist, by their team. */
export async function unsubscribeReported(
  at: At,
  contacts: readonly { team_id: string; identity: string }[],
): Promise<void> {
  const distinct = new Map(contacts.map((contact) => [`${contact.team_id}/${contact.identity}`, contact]))
  for (const { team_id, identity } of distinct.values()) {
    if (await leaveWhileSuppressed(at.tx, team_id, identity)) continue
    await unsubscribe({ ...at, actor: null }, team_id, identity)
  }
}
