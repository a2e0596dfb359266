/** Verbs of `job`: the progress of background jobs, and stopping them. */

import { RequestError } from '../errors.ts'
import {
  backgroundJobById,
  latestBackgroundJobs,
} from '../maintenance/background-jobs/background-jobs.sql.ts'
import { stopBackgroundJob } from '../maintenance/background-jobs/stop.ts'
import { atMost, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

export const verbs: Verbs = ({ verb, look, change }) => {
  verb('list', 'List the background jobs of the last month, newest first, with their progress')
    .option('--team <team>', 'only this team', uuidArgument)
    .option('--limit <n>', ...atMost(50))
    .action(
      look((database, { team, limit }: { team?: string; limit: number }) =>
        latestBackgroundJobs(database, team ?? null, limit),
      ),
    )

  verb('show ID', 'Show a background job, its progress and its result').action(
    look(async (database, id: string) => {
      const shown = await backgroundJobById(database, null, id)
      if (shown) return shown
      throw new RequestError('not_found', TEXTS.noJob)
    }),
  )

  verb('stop ID', 'Stop a running bulk action. Changes made so far are kept').action(
    change(async (by, id: string) => {
      const stopped = await stopBackgroundJob(by, null, id)
      if (stopped) return stopped
      throw new RequestError('invalid_state', TEXTS.jobNotStopped)
    }),
  )
}
