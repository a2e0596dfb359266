/** Erases a person as the CLI does: as a background job, all of it in this process. */
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { runBackgroundJob } from '../../db/upkeep/background-jobs/background-jobs.ts'
import { type BackgroundJobTools, erasureOf } from '../../db/upkeep/background-jobs/kinds.ts'
import type { Erasure } from '../../db/upkeep/retention/erase.ts'

export const erasePerson = (
  { secrets, ...deps }: { database: Database; queue: BackgroundJobTools['queue']; secrets: Secrets },
  team: string,
  identity: string,
): Promise<Erasure> =>
  runBackgroundJob<Erasure>({ ...deps, secrets }, { ...erasureOf(secrets, team, identity), actor: 'cli' })
