/** Verbs of `contact`: a team's contacts, and what suppresses them. */
import { requireTeam } from '../accounts/teams/view.ts'
import { CONTACT_STATUSES, type ContactStatus, contactsOfTeam } from '../audience/contacts/contacts.sql.ts'
import { type ByHand, SUPPRESSIONS, suppressByHand } from '../audience/suppressions/by-hand.ts'
import { liftSuppression, showContact } from '../audience/suppressions/lift.ts'
import { erasureOf } from '../maintenance/background-jobs/kinds.ts'
import type { Erasure } from '../maintenance/retention/erase.ts'
import { exportPerson } from '../maintenance/retention/export.ts'
import { sentToContact, sentView } from '../messages/sent.ts'
import { ACTOR } from './context.ts'
import { atMost, oneOf, only } from './input.ts'
import { answer, type Verbs } from './noun.ts'

/** How many messages of each channel are shown with a contact. */
const MAX_MESSAGES = 20

type ListOptions = { email?: string; status?: ContactStatus; limit: number }
type Suppression = { as: ByHand['as']; reason: string }

/** All that is stored of a person: shown, and taken away. */
const personVerbs: Verbs = ({ verb, admin }) => {
  verb(
    'export TEAM EMAIL',
    'Export everything that is stored about a contact, as one JSON value. The export is audited',
  )
    .addHelpText(
      'after',
      `
For emails with several recipients, it only contains this recipient and their events.
` + 'Returns contact_not_found if nothing is stored about the address.',
    )
    .action(
      answer(async (team: string, identity: string) => {
        const deps = { database: await admin.database(), secrets: await admin.secrets() }
        return exportPerson({ ...deps, now: await admin.now(), actor: ACTOR }, team, identity)
      }),
    )

  verb('erase TEAM EMAIL', 'Erase a contact, and their data in emails, events and reports').action(
    answer(async (team: string, identity: string) => {
      const secrets = await admin.secrets()
      await requireTeam(await admin.database(), team)
      return admin.runBackgroundJob<Erasure>(erasureOf(secrets, team, identity), secrets)
    }),
  )
}

export const verbs: Verbs = (noun) => {
  const { verb, look, change, ofTeam } = noun
  verb('list TEAM', 'List the contacts of a team, newest first')
    .option('--email <part>', 'only addresses that contain this')
    .option('--status <status>', ...only(CONTACT_STATUSES))
    .option('--limit <n>', ...atMost(1_000))
    .action(
      ofTeam((database, team, { limit, ...filter }: ListOptions) =>
        contactsOfTeam(database, team, filter, { offset: 0, limit }),
      ),
    )

  verb('show TEAM EMAIL', 'Show a contact, why it is suppressed, and the latest messages to it').action(
    look(async (database, team: string, identity: string) => {
      const contact = await showContact(database, team, identity)
      return { ...contact, ...sentView(await sentToContact(database, team, contact, MAX_MESSAGES)) }
    }),
  )

  verb('lift TEAM EMAIL', 'Remove the suppression of a contact. The contact returns to its previous status')
    .requiredOption('--reason <text>', 'the reason, for the audit log')
    .action(
      change(
        (by, team: string, identity: string, { reason }: { reason: string }) =>
          liftSuppression(by, team, { identity, reason }),
        'secrets',
      ),
    )

  const asGiven = { EMAIL: ['its address'] } as const
  verb('suppress TEAM EMAIL', 'Suppress an address, whether or not it is a contact', asGiven)
    .requiredOption('--as <status>', `the status to set: ${SUPPRESSIONS.join(', ')}`, oneOf(SUPPRESSIONS))
    .requiredOption('--reason <text>', 'the reason, for the audit log')
    .action(
      change(async (by, team: string, email: string, how: Suppression) => {
        await requireTeam(by.tx, team)
        return suppressByHand(by, team, { email, ...how })
      }),
    )

  personVerbs(noun)
}
