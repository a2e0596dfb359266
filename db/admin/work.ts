/** Verbs of `work`: how far long work has come. */
import { Refusal } from '../errors.ts'
import { latestWorks, workById } from '../upkeep/work/works.sql.ts'
import { positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 50

export const verbs: Verbs = (work, admin) => {
  work
    .command('list')
    .description('long work of the last month, newest first: what, how far, who began it')
    .option('--team <team>', 'only this team’s', uuid)
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(async ({ team, limit }: { team?: string; limit: number }) =>
        latestWorks(await admin.database(), team ?? null, limit),
      ),
    )

  work
    .command('show')
    .description('one work: done of total, and what came of it')
    .argument('<id>', 'its id', uuid)
    .action(
      answer(async (id: string) => {
        const shown = await workById(await admin.database(), null, id)
        if (!shown)
          throw new Refusal('not_found', 'there is no such work; finished work is forgotten after a month')
        return shown
      }),
    )
}
