/**
 * Leaves out messages whose recipients are all suppressed, in a requeue by filter. A worker checks each email again.
 */
import { readSuppressTransactional } from '../accounts/teams/teams.sql.ts'
import { findStopping } from '../audience/suppressions/suppressed.ts'
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import { recipientIdentity } from '../validation/addressees.ts'
import { suppressibleRecipients } from './requeue.sql.ts'

/** `secrets` can be null if the team has no erased addresses. */
type At = { tx: Tx; secrets: Pick<Secrets, 'signatures'> | null }

/** @returns a team's messages with a recipient left, and how many recipients of all are suppressed. */
export async function leaveOutSuppressed(
  { tx, secrets }: At,
  channel: Deliverable,
  teamId: string,
  refs: readonly DeliveryRef[],
): Promise<{ left: readonly DeliveryRef[]; suppressed: number }> {
  if (!channel.suppressible || refs.length === 0) return { left: refs, suppressed: 0 }
  const stops = await readSuppressTransactional(tx, teamId)
  if (stops === 'nothing') return { left: refs, suppressed: 0 }
  const rows = (await suppressibleRecipients(tx, channel, refs)).map(({ recipients, ...ref }) => ({
    ref,
    identities: [...new Set((recipients ?? []).map(recipientIdentity))],
  }))
  const all = [...new Set(rows.flatMap(({ identities }) => identities))]
  const stopped = await findStopping(tx, secrets, { teamId, stops }, all)
  const left: DeliveryRef[] = []
  let suppressed = 0
  for (const { ref, identities } of rows) {
    const count = identities.filter((identity) => stopped.has(identity)).length
    suppressed += count
    if (identities.length === 0 || count < identities.length) left.push(ref)
  }
  return { left, suppressed }
}
