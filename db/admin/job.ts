/** Verbs of `job`: how far background jobs have come. */

import { RequestError } from '../errors.ts'
import {
  backgroundJobById,
  latestBackgroundJobs,
} from '../maintenance/background-jobs/background-jobs.sql.ts'
import { atMost, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

export const verbs: Verbs = ({ verb, look }) => {
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
}
