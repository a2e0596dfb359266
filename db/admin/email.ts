/** Verbs of `email`: a team's stored emails. */
import { removeEmail } from '../emails/remove.ts'
import { requeueEmail } from '../emails/requeue.ts'
import { listEmails, showEmail } from '../emails/show.ts'
import { EMAIL_LADDER, type EmailStatus } from '../emails/status.ts'
import { createVersions } from '../templates/versions.ts'
import type { Admin } from './context.ts'
import { oneOf, positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 10_000

const depsOf = async (admin: Admin) => ({
  tx: await admin.database(),
  versions: createVersions(),
  secrets: admin.secrets,
  now: admin.now,
  publicUrl: admin.publicUrl,
})

export const verbs: Verbs = (email, admin) => {
  email
    .command('list')
    .description('the emails of a team, newest first, without their bodies')
    .argument('<team>', 'id of the team', uuid)
    .option('--status <status>', `only these: ${EMAIL_LADDER.join(', ')}`, oneOf(EMAIL_LADDER))
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(
        async (team: string, options: { status?: EmailStatus; limit: number }) =>
          await listEmails(await depsOf(admin), team, options),
      ),
    )

  email
    .command('show')
    .description('an email with its events, and what it waits for while it is queued')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the email', uuid)
    .action(answer(async (team: string, id: string) => showEmail(await depsOf(admin), team, id)))

  email
    .command('requeue')
    .description('try a queued email again now, also after it was given up')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the email', uuid)
    .action(
      answer(
        async (team: string, id: string) =>
          await admin.transaction(async (at) =>
            requeueEmail({ ...at, queue: await admin.queue() }, team, id),
          ),
      ),
    )

  email
    .command('delete')
    .description('delete an email with its events; one of this period frees its place in the allowance')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the email', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const { created_at } = await admin.transaction((at) => removeEmail(at, team, id))
        return { id, created_at, deleted: true }
      }),
    )
}
