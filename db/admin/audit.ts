/** Verbs of `audit`: who did what, when. */
import { auditEntries } from '../accounts/audit/audit.sql.ts'
import { positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 1_000

export const verbs: Verbs = (audit, admin) => {
  audit
    .command('list')
    .description('what people and operators have changed, newest first')
    .option('--team <team>', 'only of this team', uuid)
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(async (options: { team?: string; limit: number }) =>
        auditEntries(await admin.database(), options),
      ),
    )
}
