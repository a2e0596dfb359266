/** Finds a team's suppressed addresses, in the table or by the hash of an erasure. */
import type { SuppressTransactional } from '../../accounts/teams/suppress-transactional.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Cause } from '../contacts/effect.ts'
import { erasedSuppressions } from '../contacts/erased.ts'
import { type SuppressedAddress, suppressedAmong } from './addresses.sql.ts'
import { stopsTransactional } from './cause.ts'

/** Why an address is suppressed; `stored` is null for one that was erased. */
type FoundSuppression = { cause: Cause; stored: SuppressedAddress | null }

/** Returns the suppressed ones of these addresses, by identity. Without `secrets`, erased ones are left out. */
export async function findSuppressed(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'> | null,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, FoundSuppression>> {
  if (identities.length === 0) return new Map()
  const erased = secrets === null ? [] : await erasedSuppressions(tx, secrets, teamId, identities)
  const stored = await suppressedAmong(
    tx,
    identities.map((identity) => ({ team_id: teamId, identity })),
  )
  return new Map<string, FoundSuppression>([
    ...[...erased].map(([identity, cause]) => [identity, { cause, stored: null }] as const),
    ...stored.map((one) => [one.identity, { cause: one.cause, stored: one }] as const),
  ])
}

/** True if the suppression stops transactional email of a team that chose `stops`. */
export function isStopping({ cause, stored }: FoundSuppression, stops: SuppressTransactional): boolean {
  const bounced_at = stored ? stored.bounced_at : cause === 'bounce' ? 'unknown' : null
  return stopsTransactional(stops, { cause, bounced_at })
}

/** Returns the addresses that get no transactional email of a team that chose `stops`. Null for an erased one. */
export async function findStopping(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'> | null,
  { teamId, stops }: { teamId: string; stops: SuppressTransactional },
  identities: readonly string[],
): Promise<ReadonlyMap<string, SuppressedAddress | null>> {
  if (stops === 'nothing') return new Map()
  const found = await findSuppressed(tx, secrets, teamId, identities)
  return new Map(
    [...found].flatMap(([identity, one]) => (isStopping(one, stops) ? [[identity, one.stored]] : [])),
  )
}
