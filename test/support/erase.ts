/** Erases a contact like the CLI: as a background job, completely in this process. */

import { runBackgroundJob } from '../../db/maintenance/background-jobs/background-jobs.ts'
import type { BackgroundJobTools } from '../../db/maintenance/background-jobs/kind.ts'
import { toErasure } from '../../db/maintenance/background-jobs/kinds.ts'
import type { Erasure } from '../../db/maintenance/retention/erase.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'

export const erasePerson = (
  { secrets, ...deps }: { database: Database; queue: BackgroundJobTools['queue']; secrets: Secrets },
  team: string,
  identity: string,
): Promise<Erasure> =>
  runBackgroundJob<Erasure>({ ...deps, secrets }, { ...toErasure(secrets, team, identity), actor: 'cli' })
