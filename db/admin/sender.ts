/** Verbs of `sender`: numbers, accounts and relays, and their pauses. */
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
    'List all senders that were ever rate-limited, slowed or paused, with their status, the reason and their events',
  )
    .option('--webhooks', 'only webhooks whose server sent Retry-After, longest wait first')
    .option('--limit <n>', 'how many of these webhooks to show', positive, 100)
    .action(
      look(async (database, { webhooks = false, limit }: ListOptions) =>
        webhooks ? pausedEndpoints(database, limit) : listSenders(database),
      ),
    )

  verb(
    'check',
    'Check whether the email provider is reachable and accepts the login. A worker runs the check and sends nothing',
  )
    .addHelpText(
      'after',
      '\n`return_path` shows whether RETURN_PATH_DOMAIN can receive bounces: its MX and SPF records and the last report.\nExits with code 1 if the provider can’t be reached or rejects the login.',
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

  verb('resume KEY', 'End the pause of a sender immediately', {
    KEY: ['its key, as printed by `sender list`'],
  }).action(change(resumeSender))
}
