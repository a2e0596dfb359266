/** A team as `team show` prints it, at the database's current time. */

import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { computeBurst } from '../plans/defaults.ts'
import { byQuota } from '../plans/quotas.ts'
import { TEXTS } from '../texts.ts'
import { type Account, left, toAccount } from './limits.ts'
import { readBulkPause } from './reputation.sql.ts'
import type { SuppressTransactional } from './suppress-transactional.ts'
import {
  type OverridesRow,
  readAccountRow,
  readOverrides,
  readSuppressTransactional,
  type TeamRow,
  teamById,
} from './teams.sql.ts'

export type TeamView = ReturnType<typeof teamView>

export const asTest = ({ test }: { test: boolean }): { test?: true } => (test ? { test } : {})

/** @throws RequestError not_found. */
export async function requireTeam(tx: Tx, id: string): Promise<TeamRow> {
  const team = await teamById(tx, id)
  if (team) return team
  throw requestError('not_found', TEXTS.noTeam, { id })
}

const remaining = (limit: number | null, used: number): number | null =>
  limit === null ? null : left(limit, used)

export function teamView(
  team: Pick<TeamRow, 'id' | 'name' | 'test' | 'suspended_at'>,
  account: Account,
  overrides: OverridesRow,
  suppress_transactional: SuppressTransactional,
  bulk: Awaited<ReturnType<typeof readBulkPause>>,
) {
  const { plan, limits, used, bucket, period } = account
  return {
    id: team.id,
    name: team.name,
    plan,
    ...asTest(team),
    suspended_at: team.suspended_at,
    bulk_paused: bulk && { reason: bulk.pause.reason, since: bulk.since },
    /** Which suppressions stop its transactional email. */
    suppress_transactional,
    /** Null: unlimited. */
    limits,
    /** The team's own limits. Null: the plan's. */
    overrides: {
      ...byQuota(({ limit }) => overrides[limit]),
      rate: overrides.send_rate_per_second,
      /** In gigabytes. */
      storage: overrides.storage_gb,
    },
    used,
    left: {
      ...byQuota(({ name }) => remaining(limits[name], used[name])),
      storage: remaining(limits.storage, used.storage),
    },
    bucket: { tokens: Math.floor(bucket.tokens * 1_000) / 1_000, capacity: computeBurst(limits.rate) },
    period: { start: period.start.toISOString(), end: period.end.toISOString() },
  }
}

/** Returns the current state of a team. @throws RequestError not_found. */
export async function showTeam(tx: Tx, teamId: string): Promise<TeamView> {
  const team = await requireTeam(tx, teamId)
  const account = await readAccountRow(tx, teamId)
  if (!account) throw new Error(`team ${teamId} has no account`)
  const suppresses = await readSuppressTransactional(tx, teamId)
  return teamView(
    team,
    toAccount(account),
    await readOverrides(tx, teamId),
    suppresses,
    await readBulkPause(tx, teamId),
  )
}
