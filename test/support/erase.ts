/** Erases a person as the CLI does: as a background job, all of it in this process. */
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { Erasure } from '../../db/upkeep/retention/erase.ts'
import { erasureOf, type WorkTools } from '../../db/upkeep/work/kinds.ts'
import { doWork } from '../../db/upkeep/work/work.ts'

export const erasePerson = (
  { secrets, ...deps }: { database: Database; queue: WorkTools['queue']; secrets: Secrets },
  team: string,
  identity: string,
): Promise<Erasure> =>
  doWork<Erasure>({ ...deps, secrets }, { ...erasureOf(secrets, team, identity), actor: 'cli' })
