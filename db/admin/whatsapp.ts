/** Verbs of `whatsapp`: a team's WhatsApp messages. */
import { WHATSAPP } from '../channels/whatsapp.sql.ts'
import { WHATSAPP_LADDER } from '../channels/whatsapp.ts'
import { listMessages, showMessage } from '../messages/whatsapp/show.ts'
import type { WhatsappStatus } from '../messages/whatsapp/status.ts'
import { oneOf, positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { requeueVerb } from './requeue.ts'

const LIST_LENGTH = 10_000

export const verbs: Verbs = (whatsapp, admin) => {
  whatsapp
    .command('list')
    .description('the WhatsApp messages of a team, newest first: one per recipient')
    .argument('<team>', 'id of the team', uuid)
    .option('--status <status>', `only these: ${WHATSAPP_LADDER.join(', ')}`, oneOf(WHATSAPP_LADDER))
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(
        async (team: string, options: { status?: WhatsappStatus; limit: number }) =>
          await listMessages(await admin.database(), team, options),
      ),
    )

  whatsapp
    .command('show')
    .description('a WhatsApp message with its events, and what it waits for while it is queued')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the message', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const at = { tx: await admin.database(), now: await admin.now() }
        return showMessage(at, team, id)
      }),
    )

  requeueVerb(whatsapp, admin, { channel: WHATSAPP, statuses: WHATSAPP_LADDER, what: 'messages' })
}
