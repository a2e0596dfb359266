/** Verbs of `broadcast`: one template sent to all contacts of some topics, with the same rules as in the API. */
import type { By } from '../accounts/audit/record.ts'
import { createDomainLookups } from '../accounts/domains/dns-lookups.ts'
import { requireTeam } from '../accounts/teams/view.ts'
import { createVersions } from '../content/templates/versions.ts'
import { type BroadcastRow, broadcastsOfTeam } from '../messages/broadcasts/broadcasts.sql.ts'
import { changeBroadcast, createBroadcast, requireBroadcast } from '../messages/broadcasts/draft.ts'
import { readChange, readNew } from '../messages/broadcasts/fields.ts'
import { skippedBy } from '../messages/broadcasts/recipients.sql.ts'
import { sendTest } from '../messages/broadcasts/send-test.ts'
import {
  cancelBroadcast,
  pauseBroadcast,
  resumeBroadcast,
  sendBroadcast,
} from '../messages/broadcasts/start.ts'
import { broadcastView, broadcastViews } from '../messages/broadcasts/view.ts'
import { startWarnings } from '../messages/broadcasts/warnings.ts'
import type { Producer } from '../queue/producer.ts'
import { fileJson, instant, mailboxes } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 1_000

type Acting = { team_id: string; domain: null }
const acting = (team: string): Acting => ({ team_id: team, domain: null })

const steps: Verbs = ({ verb, change, admin }) => {
  const drafted = async (work: (by: By) => Promise<BroadcastRow>) =>
    admin.transaction(async (by) => broadcastView(by.tx, await work(by)))
  const moved = <A extends unknown[]>(
    work: (by: By & { queue: Producer }, acting: Acting, id: string, ...args: A) => Promise<BroadcastRow>,
  ) =>
    change(
      async (by, team: string, id: string, ...args: A) =>
        broadcastView(by.tx, await work(by, acting(team), id, ...args)),
      'queue',
    )

  verb('create TEAM', 'Create a draft')
    .requiredOption('--file <file>', 'the fields as the API accepts them, as JSON (- reads standard input)')
    .action(
      answer(async (team: string, { file }: { file: string }) => {
        const draft = readNew(await fileJson(file))
        await requireTeam(await admin.database(), team)
        return drafted(async (by) => (await createBroadcast(by, acting(team), draft)).row)
      }),
    )

  verb('update TEAM ID', 'Change a draft')
    .requiredOption('--file <file>', 'the fields to change, as JSON (- reads standard input)')
    .action(
      answer(async (team: string, id: string, { file }: { file: string }) => {
        const fields = readChange(await fileJson(file))
        return drafted((by) => changeBroadcast(by, acting(team), id, fields))
      }),
    )

  verb('start TEAM ID', 'Start a draft, or schedule it. Its links use PUBLIC_URL')
    .option('--at <time>', 'when to start', instant)
    .addHelpText(
      'after',
      '\n`warnings` lists requirements of mailbox providers that the domain doesn’t meet. The broadcast starts anyway.',
    )
    .action(
      answer(async (team: string, id: string, { at }: { at?: Date }) => {
        const database = await admin.database()
        const looks = { ...createDomainLookups(admin.dnsServer), returnDomain: admin.returnDomain }
        const warnings = await startWarnings(database, await requireBroadcast(database, team, id), looks)
        const deps = { queue: await admin.queue(), publicUrl: admin.publicUrl ?? null }
        const view = await drafted((by) =>
          sendBroadcast({ ...by, ...deps }, acting(team), id, { send_at: at?.toISOString() }),
        )
        return { ...view, warnings }
      }),
    )

  verb('pause TEAM ID', 'Pause a broadcast. Emails in progress are still sent').action(moved(pauseBroadcast))
  verb('resume TEAM ID', 'Resume a paused broadcast').action(moved(resumeBroadcast))
  verb('cancel TEAM ID', 'Cancel a broadcast. Queued emails are never sent').action(moved(cancelBroadcast))
}

const looks: Verbs = ({ verb, look, ofTeam, change, admin }) => {
  verb('list TEAM', 'List the broadcasts of a team, newest first').action(
    ofTeam(async (database, team) =>
      broadcastViews(database, await broadcastsOfTeam(database, team, { limit: LIST_LENGTH })),
    ),
  )

  verb('show TEAM ID', 'Show a broadcast and its stats').action(
    look(async (database, team: string, id: string) =>
      broadcastView(database, await requireBroadcast(database, team, id)),
    ),
  )

  verb('test TEAM ID', 'Send a test to up to 5 addresses')
    .requiredOption('--to <addresses>', 'separated by commas', mailboxes)
    .option('--contact <email>', 'use the properties of this contact as variables')
    .action(
      change(
        async (by, team: string, id: string, { to, contact }: { to: string[]; contact?: string }) => {
          const deps = { ...by, publicUrl: admin.publicUrl ?? null, versions: createVersions() }
          const ids = await sendTest(deps, acting(team), id, { to, contact })
          return ids.map((email_id, index) => ({ id: email_id, to: to[index] }))
        },
        'queue',
        'secrets',
      ),
    )

  verb('skips TEAM ID', 'List the contacts that were skipped, and why').action(
    look(async (database, team: string, id: string) => {
      const { id: known } = await requireBroadcast(database, team, id)
      return skippedBy(database, { team_id: team, broadcast_id: known }, { limit: null })
    }),
  )
}

export const verbs: Verbs = (noun) => {
  steps(noun)
  looks(noun)
}
