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
    'senders that were ever paced, slowed or paused: how they stand, why, and what happened to them',
  )
    .option('--webhooks', 'the webhooks that ask to wait instead, those for longest first')
    .option('--limit <n>', 'of those, how many at most', positive, 100)
    .action(
      look(async (database, { webhooks = false, limit }: ListOptions) =>
        webhooks ? pausedEndpoints(database, limit) : listSenders(database),
      ),
    )

  verb(
    'check',
    'whether email’s provider can be reached and lets us in, now; a worker asks it and sends nothing',
  )
    .addHelpText('after', '\nExit code 1 if the provider can’t be reached or doesn’t let us in.')
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

  verb('resume KEY', 'end the pause of a sender now, whatever its provider said', {
    KEY: ['its key, as `sender list` shows it'],
  }).action(change(resumeSender))
}
