/** Verbs of `contact`: a team's contacts, and what suppresses them. */

import { teamOrRefusal } from '../accounts/teams/view.ts'
import { CONTACT_STATUSES, type ContactStatus, contactsOfTeam } from '../audience/contacts/contacts.sql.ts'
import { type ByHand, SUPPRESSIONS, suppressByHand } from '../audience/suppressions/by-hand.ts'
import { liftSuppression, showContact } from '../audience/suppressions/lift.ts'
import { sentToContact, sentView } from '../messages/sent.ts'
import type { Erasure } from '../upkeep/retention/erase.ts'
import { erasureOf } from '../upkeep/work/kinds.ts'
import { emailIdentity, oneOf, positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 1_000
/** How many messages of each channel are shown with a contact. */
const LATEST = 20

type ListOptions = { email?: string; status?: ContactStatus; limit: number }

const suppressing: Verbs = (contact, admin) => {
  contact
    .command('lift')
    .description('end the suppression of a contact: it becomes what it was before')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'its address', emailIdentity)
    .requiredOption('--reason <text>', 'why, for the audit log')
    .action(
      answer((team: string, identity: string, { reason }: { reason: string }) =>
        admin.transaction((by) => liftSuppression(by, team, { identity, reason })),
      ),
    )

  contact
    .command('suppress')
    .description('mark an address as one not to write to; it becomes a contact if it is none')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'its address')
    .requiredOption('--as <status>', `as what: ${SUPPRESSIONS.join(', ')}`, oneOf(SUPPRESSIONS))
    .requiredOption('--reason <text>', 'why, for the audit log')
    .action(
      answer(async (team: string, email: string, how: { as: ByHand['as']; reason: string }) => {
        const secrets = await admin.secrets()
        await teamOrRefusal(await admin.database(), team)
        return admin.transaction((by) => suppressByHand({ ...by, secrets }, team, { email, ...how }))
      }),
    )
}

export const verbs: Verbs = (contact, admin) => {
  contact
    .command('list')
    .description('the contacts of a team, newest first')
    .argument('<team>', 'id of the team', uuid)
    .option('--email <part>', 'only those whose address holds this')
    .option('--status <status>', `only these: ${CONTACT_STATUSES.join(', ')}`, oneOf(CONTACT_STATUSES))
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(async (team: string, { limit, ...filter }: ListOptions) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return contactsOfTeam(database, team, filter, { offset: 0, limit })
      }),
    )

  contact
    .command('show')
    .description('a contact, what suppresses it (cause, time, email, report), and what was sent to it lately')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'its address', emailIdentity)
    .action(
      answer(async (team: string, identity: string) => {
        const database = await admin.database()
        const contact = await showContact(database, team, identity)
        return { ...contact, ...sentView(await sentToContact(database, team, contact, LATEST)) }
      }),
    )

  suppressing(contact, admin)

  contact
    .command('erase')
    .description('erase a person: contact, recipient in emails and events, reports that name the address')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'the address', emailIdentity)
    .action(
      answer(async (team: string, identity: string) => {
        const secrets = await admin.secrets()
        await teamOrRefusal(await admin.database(), team)
        return admin.work<Erasure>(erasureOf(secrets, team, identity), secrets)
      }),
    )
}
