/**
 * Unsubscribes recipients after reports that they left through the relay's link, list or page. A suppressed contact
 * stays suppressed, and is unsubscribed when the suppression ends. For an address without a contact, a keyed hash is
 * stored. The caller locks accounts and contacts.
 */
import type { At } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { storeOptOut } from '../contacts/erased.sql.ts'
import { erasureHash } from '../contacts/erased.ts'
import { leaveWhileSuppressed } from './subscription.sql.ts'
import { unsubscribe } from './subscription.ts'

/** `contact` is null for an address that isn't a contact. */
type Leaver = { team_id: string; identity: string; contact: unknown }

/** @param secrets if undefined, only contacts are unsubscribed. */
export async function unsubscribeReported(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'sign'> | undefined },
  leavers: readonly Leaver[],
): Promise<void> {
  const distinct = new Map(leavers.map((leaver) => [`${leaver.team_id}/${leaver.identity}`, leaver]))
  for (const { team_id, identity, contact } of distinct.values()) {
    if (contact === null) {
      const hash = secrets && erasureHash(secrets, team_id, identity)
      if (hash) await storeOptOut(at.tx, team_id, { hash, left_topic_ids: null }, at.now)
    } else if (!(await leaveWhileSuppressed(at.tx, team_id, identity)))
      await unsubscribe({ ...at, actor: null }, team_id, identity)
  }
}
