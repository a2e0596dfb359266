/** Verbs of `sender`: what we send through (numbers, accounts, relays), and the end of a pause. */
import { awaitCheck, requestCheck } from '../delivery/senders/check.ts'
import { listSenders, resumeSender } from '../delivery/senders/show.ts'
import { pausedEndpoints } from '../messages/webhooks/endpoints.sql.ts'
import { positive } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 100

export const verbs: Verbs = (sender, admin) => {
  sender
    .command('list')
    .description(
      'senders that were ever paced, slowed or paused: how they stand, why, and what happened to them',
    )
    .option('--webhooks', 'the webhooks that ask to wait instead, those for longest first')
    .option('--limit <n>', 'of those, how many at most', positive, LIST_LENGTH)
    .action(
      answer(async ({ webhooks = false, limit }: { webhooks?: boolean; limit: number }) => {
        const database = await admin.database()
        return webhooks ? pausedEndpoints(database, limit) : listSenders(database)
      }),
    )

  sender
    .command('check')
    .description(
      'whether email’s provider can be reached and lets us in, now; a worker asks it and sends nothing',
    )
    .action(
      answer(async () => {
        const queue = await admin.queue()
        const id = await admin.transaction((by) => requestCheck({ ...by, queue }))
        return awaitCheck(await admin.database(), id)
      }),
    )

  sender
    .command('resume')
    .description('end the pause of a sender now, whatever its provider said')
    .argument('<key>', 'its key, as `sender list` shows it')
    .action(answer((key: string) => admin.transaction((by) => resumeSender(by, key))))
}
