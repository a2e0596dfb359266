/** Verbs of `contact`: a team's contacts and their suppressions. */
import { requireTeam } from '../accounts/teams/view.ts'
import { CONTACT_STATUSES, type ContactStatus, contactsOfTeam } from '../audience/contacts/contacts.sql.ts'
import { type ByHand, SUPPRESSIONS, suppressByHand } from '../audience/suppressions/by-hand.ts'
import { liftSuppression, showContact } from '../audience/suppressions/lift.ts'
import { toErasure } from '../maintenance/background-jobs/kinds.ts'
import type { Erasure } from '../maintenance/retention/erase.ts'
import { exportPerson } from '../maintenance/retention/export.ts'
import { eraseNumber, exportNumber } from '../maintenance/retention/whatsapp-number.ts'
import { sentToContact, sentView } from '../messages/sent.ts'
import { ACTOR } from './context.ts'
import { addressOrPhone, atMost, oneOf, only } from './input.ts'
import { answer, type Verbs } from './noun.ts'

/** Messages per channel that are shown with a contact. */
const MAX_MESSAGES = 20

type ListOptions = { email?: string; status?: ContactStatus; limit: number }
type Suppression = { as: ByHand['as']; reason: string }

/** A contact is identified by an email address, or by a phone number for WhatsApp. */
const addressOrNumber = {
  EMAIL: ['the email address, or a number such as +15551234567', addressOrPhone],
} as const

const isNumber = (identity: string): boolean => identity.startsWith('+') && !identity.includes('@')

/** The export and erasure of personal data. */
const personVerbs: Verbs = ({ verb, admin }) => {
  verb(
    'export TEAM EMAIL',
    'Export everything that is stored about a contact, as one JSON value. The audit log records it',
    addressOrNumber,
  )
    .addHelpText(
      'after',
      '\nFor an email to several recipients, the content, other recipients and their events are left out.',
    )
    .action(
      answer(async (team: string, identity: string) => {
        const deps = { database: await admin.database(), secrets: await admin.secrets() }
        const at = { ...deps, now: await admin.now(), actor: ACTOR }
        return isNumber(identity) ? exportNumber(at, team, identity) : exportPerson(at, team, identity)
      }),
    )

  verb(
    'erase TEAM EMAIL',
    'Erase a contact, and their data in messages, events, reports and webhooks',
    addressOrNumber,
  ).action(
    answer(async (team: string, identity: string): Promise<object> => {
      const secrets = await admin.secrets()
      if (isNumber(identity))
        return admin.transaction((by) => eraseNumber({ ...by, secrets }, team, identity))
      await requireTeam(await admin.database(), team)
      return admin.runBackgroundJob<Erasure>(toErasure(secrets, team, identity), secrets)
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

  verb('lift TEAM EMAIL', 'Remove the suppression of an address. Its contact returns to the previous status')
    .requiredOption('--reason <text>', 'the reason, for the audit log')
    .action(
      change(async (by, team: string, identity: string, { reason }: { reason: string }) => {
        await requireTeam(by.tx, team)
        return liftSuppression(by, team, { identity, reason })
      }, 'secrets'),
    )

  const asGiven = { EMAIL: ['the email address'] } as const
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
