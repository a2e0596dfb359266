/** Verbs of `whatsapp`: a team's WhatsApp messages. */
import { WHATSAPP } from '../channels/whatsapp.sql.ts'
import { WHATSAPP_LADDER } from '../channels/whatsapp.ts'
import { optOutsOfTeam } from '../messages/whatsapp/opt-outs.sql.ts'
import { optInManually, optOutManually } from '../messages/whatsapp/opt-outs.ts'
import { listMessages, showMessage } from '../messages/whatsapp/show.ts'
import { atMost, only, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'
import { requeueVerb, textsFor } from './requeue.ts'
import { scheduledVerbs } from './scheduled.ts'

export const verbs: Verbs = (noun) => {
  const { verb, look, admin } = noun
  verb('list TEAM', 'List the WhatsApp messages of a team, newest first, one per recipient')
    .option('--status <status>', ...only(WHATSAPP_LADDER))
    .option('--scheduled', 'only scheduled messages')
    .option('--limit <n>', ...atMost(10_000))
    .action(look(listMessages))

  verb('show TEAM ID', 'Show a WhatsApp message, its events, and what it is waiting for', {
    ID: ['ID of the message', uuidArgument],
  }).action(
    look(async (tx, team: string, id: string) => showMessage({ tx, now: await admin.now() }, team, id)),
  )

  const number = { NUMBER: ['the recipient’s number, such as +15551234567'] } as const
  noun
    .verb('opt-outs TEAM', 'List the recipients who opted out of a team’s marketing, newest first')
    .action(noun.ofTeam((database, team: string) => optOutsOfTeam(database, team)))
  noun
    .verb(
      'opt-out TEAM NUMBER',
      'Opt a recipient out of marketing. Marketing messages to this number then fail. Others are still sent',
      number,
    )
    .action(noun.change(optOutManually))
  noun
    .verb('opt-in TEAM NUMBER', 'End the opt-out of a recipient', number)
    .action(noun.change(optInManually, 'secrets'))

  scheduledVerbs(noun, { channel: WHATSAPP.name, noun: 'a WhatsApp message' })
  requeueVerb(noun, { channel: WHATSAPP, statuses: WHATSAPP_LADDER, texts: textsFor('messages') })
}
