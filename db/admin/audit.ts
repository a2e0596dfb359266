/** Verbs of `audit`: who did what, when. */
import { auditEntries } from '../accounts/audit/audit.sql.ts'
import { atMost, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, look }) => {
  verb('list', 'Show changes, and reads by operators, newest first')
    .option('--team <team>', 'only this team', uuidArgument)
    .option('--limit <n>', ...atMost(1_000))
    .action(look(auditEntries))
}
