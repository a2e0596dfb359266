/** Sends WhatsApp messages of test teams to the simulator, with the guarantees of deliver-test.ts. */
import { TEST_WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { messagesToDeliver } from '../../db/messages/whatsapp/messages.sql.ts'
import {
  reportsOfWhatsapp,
  SIMULATED_WHATSAPP,
  SIMULATED_WHATSAPP_SENDER as sender,
} from '../providers/test/whatsapp.ts'
import { type Reporting, reporting } from './deliver-test.ts'
import { type WhatsappDeps, whatsappThrough } from './deliver-whatsapp.ts'

/** The wait after a lost response, in seconds. The simulator loses none. */
const UNKNOWN_WAIT_S = 60

export const testWhatsappChannel = (deps: Omit<WhatsappDeps, 'whatsapp'> & Reporting) =>
  reporting(
    whatsappThrough<'deliver-test-whatsapp', true>(
      TEST_WHATSAPP,
      {
        unknown_wait: UNKNOWN_WAIT_S,
        senders: { one: async () => sender },
        read: async (tx, refs) =>
          (await messagesToDeliver(tx, refs, true)).map((row) => ({
            row,
            sender,
            send: (draft) => SIMULATED_WHATSAPP.send({ ...draft, number: null }),
          })),
      },
      deps,
    ),
    deps,
    ({ answer: { row, outcome }, at }) =>
      outcome.kind === 'accepted'
        ? reportsOfWhatsapp({ team_id: row.team_id, id: row.message_id, to: row.recipient, at })
        : [],
  )
