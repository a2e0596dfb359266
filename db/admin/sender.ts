/** Verbs of `sender`: what we send through (numbers, accounts, relays), and the end of a pause. */
import { createDomainLookups } from '../accounts/domains/dns-lookups.ts'
import { awaitCheck, requestCheck } from '../delivery/senders/check.ts'
import { returnPathCheck } from '../delivery/senders/return-path.ts'
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
    .addHelpText(
      'after',
      '\n`return_path` says whether bounces can come back to RETURN_PATH_DOMAIN: its MX, its SPF, the last report.\nExit code 1 if the provider can’t be reached or doesn’t let us in.',
    )
    .action(
      answer(
        async () => {
          const queue = await admin.queue()
          const id = await admin.transaction((by) => requestCheck({ ...by, queue }))
          const database = await admin.database()
          const looks = createDomainLookups(admin.dnsServer)
          const [found, return_path] = await Promise.all([
            awaitCheck(database, id),
            returnPathCheck(database, admin.returnDomain, looks),
          ])
          return { ...found, return_path }
        },
        ({ fault }) => fault === null,
      ),
    )

  verb('resume KEY', 'end the pause of a sender now, whatever its provider said', {
    KEY: ['its key, as `sender list` shows it'],
  }).action(change(resumeSender))
}
