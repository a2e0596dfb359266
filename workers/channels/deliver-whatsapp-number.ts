/**
 * Sends the messages of numbers other than the default one, each only with its own number's token. A failing number
 * delays no other.
 */
import { NUMBER_WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { messagesOfNumbers, type NumberMessageRow } from '../../db/messages/whatsapp/messages.sql.ts'
import { pausedNumbers } from '../../db/messages/whatsapp/numbers.sql.ts'
import { openTokens } from '../../db/messages/whatsapp/numbers.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import {
  NUMBER_SENDERS,
  numberSender,
  senderKey,
  type WhatsappOutcome,
  type WhatsappProvider,
} from '../providers/whatsapp/provider.ts'
import {
  type Sendable,
  type WhatsappAttempt,
  type WhatsappDeps,
  whatsappThrough,
} from './deliver-whatsapp.ts'

/** How long a message waits that was claimed just before its number was paused, in seconds. */
const PAUSED_WAIT_S = 30

export function numberWhatsappChannel({
  whatsapp,
  ...deps
}: WhatsappDeps): DeliveryChannel<'deliver-whatsapp-number', WhatsappAttempt> {
  const { provider, unknown_wait } = whatsapp
  return whatsappThrough<'deliver-whatsapp-number', false>(
    NUMBER_WHATSAPP,
    {
      unknown_wait,
      senders: {
        prefix: NUMBER_SENDERS,
        paused: async () => (await pausedNumbers(deps.database)).map(senderKey),
      },
      async read(tx, refs) {
        const rows = await messagesOfNumbers(tx, refs)
        const tokens = openTokens(deps.secrets, rows)
        return rows.map((row) => sendableFrom(row, tokens, provider))
      },
    },
    deps,
  )
}

const REMOVED = 'its WhatsApp number has been removed'
const UNSEALED: WhatsappOutcome = {
  kind: 'sender',
  trouble: 'setup',
  detail:
    "not sent: the access token of the number can't be decrypted with SECRET_KEY or SECRET_KEY_PREVIOUS",
}

/** Makes a message of another number sendable. Without that number's token it isn't sent. */
function sendableFrom(
  row: NumberMessageRow,
  tokens: ReadonlyMap<string, string | null>,
  provider: WhatsappProvider,
): Sendable<false> {
  const { phone_number_id, messages_per_second, paused } = row
  const access_token = tokens.get(phone_number_id)
  const isRemoved = access_token === undefined
  return {
    row,
    sender: numberSender(phone_number_id, messages_per_second ?? 1),
    ...(isRemoved ? { given_up: REMOVED } : {}),
    ...(paused ? { wait_seconds: PAUSED_WAIT_S } : {}),
    send: async (draft, cut) =>
      access_token ? provider.send({ ...draft, number: { phone_number_id, access_token } }, cut) : UNSEALED,
  }
}
