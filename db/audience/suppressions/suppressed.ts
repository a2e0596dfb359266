/** Finds a team's suppressed addresses, in the table or by the hash of an erasure. */
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Cause } from '../contacts/effect.ts'
import { erasedSuppressions } from '../contacts/erased.ts'
import { type SuppressedAddress, suppressedAmong } from './addresses.sql.ts'

/** Why an address is suppressed; `stored` is null for one that was erased. */
type FoundSuppression = { cause: Cause; stored: SuppressedAddress | null }

/** Returns those of these addresses that are suppressed, by identity. */
export async function findSuppressed(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, FoundSuppression>> {
  if (identities.length === 0) return new Map()
  const erased = await erasedSuppressions(tx, secrets, teamId, identities)
  const stored = await suppressedAmong(
    tx,
    identities.map((identity) => ({ team_id: teamId, identity })),
  )
  return new Map<string, FoundSuppression>([
    ...[...erased].map(([identity, cause]) => [identity, { cause, stored: null }] as const),
    ...stored.map((one) => [one.identity, { cause: one.cause, stored: one }] as const),
  ])
}
