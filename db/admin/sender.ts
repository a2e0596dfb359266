/** Verbs of `sender`: what we send through (numbers, accounts, relays), and the end of a pause. */
import { awaitCheck, requestCheck } from '../delivery/senders/check.ts'
import { listSenders, resumeSender } from '../delivery/senders/show.ts'
import { pausedEndpoints } from '../messages/webhooks/endpoints.sql.ts'
import { positive } from './input.ts'
import { answer, type Verbs } from './noun.ts'

type ListOptions = { webhooks?: boolean; limit: number }

export const verbs: Verbs = ({ verb, look, change, admin }) => {
  verb(
    'list',
    'List all senders that were ever throttled or paused, with their status, the reason and their events',
  )
    .option('--webhooks', 'include webhooks whose server asked to wait, longest first')
    .option('--limit <n>', 'how many of these webhooks to show', positive, 100)
    .action(
      look(async (database, { webhooks = false, limit }: ListOptions) =>
        webhooks ? pausedEndpoints(database, limit) : listSenders(database),
      ),
    )

  verb(
    'check',
    'Check whether the email provider is reachable and accepts our login. A worker runs the check and sends nothing',
  )
    .addHelpText(
      'after',
      `
Exits with code 1 if the provider is unreachable or rejects the login.`,
    )
    .action(
      answer(
        async () => {
          const queue = await admin.queue()
          const id = await admin.transaction((by) => requestCheck({ ...by, queue }))
          return awaitCheck(await admin.database(), id)
        },
        ({ fault }) => fault === null,
      ),
    )

  verb('resume KEY', 'End the pause of a sender immediately', {
    KEY: ['its key, as printed by `sender list`'],
  }).action(change(resumeSender))
}
