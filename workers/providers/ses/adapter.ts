/**
 * Sends email through the Amazon SES API v2, as raw messages, because our headers exceed what SES's header list
 * allows. It never throws. All recipients share one outcome, because SES accepts or rejects the message for all.
 * Every send has a time limit and runs once. SES sets the envelope sender, Date and Message-ID itself and signs with
 * the identity's key. We don't sign, because SES would change signed headers. Its reports are matched by tags.
 */
import { GetAccountCommand, SESv2Client, SendEmailCommand } from '@aws-sdk/client-sesv2'
import { boundLibraries } from '../../../db/process/http-client.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { storableId } from '../../../db/validation/words.ts'
import { composeMessage } from '../mail/message.ts'
import { bytesOf, sizeOf } from '../mail/pieces.ts'
import { wireAddress, wireRecipients } from '../mail/recipients.ts'
import type { EmailDelivery, EmailProvider, Outcome, OutgoingEmail } from '../provider.ts'
import { createSendTracker } from '../send-tracker.ts'
import { sendingTime } from '../sending-time.ts'
import { judgeFault, type SesFault } from './faults.ts'
import { createHandler, type SesTimeouts } from './handler.ts'
import { createRate } from './rate.ts'
import { sesSender } from './sender.ts'

export type SesOptions = {
  region: string
  /** A server other than AWS's, such as a simulator or a VPC endpoint. */
  endpoint?: string | undefined
  configuration_set?: string | undefined
  max_connections: number
  timeouts?: Partial<SesTimeouts>
  /** How often GetAccount is called for the send rate. */
  refresh_ms?: number
  warn?: (words: string) => void
}

/** Far more than any credentials, and the time limit of one request for them in milliseconds. */
const LOOK_UP_LIMITS = { bytes: 64 * 1024, ms: 5_000 }

const DEFAULT_TIMEOUTS: SesTimeouts = { connect_ms: 5_000, answer_ms: 30_000, credentials_ms: 15_000 }
/**
 * The rate stays this share below the account's, and unused sends are saved for this many seconds, so that no second
 * exceeds the account's rate.
 */
const RATE_MARGIN = 0.1

/** Credentials come from the SDK's own chain: environment, profile, container, instance. */
export function createSesProvider(options: SesOptions): EmailProvider {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const client = createClient(options, timeouts)
  const unbound = boundLibraries(LOOK_UP_LIMITS)
  const held = () => awaitCredentials(client, timeouts.credentials_ms)
  const rate = createRate({ client, held }, options.warn ?? (() => undefined), options.refresh_ms)
  const in_flight = createSendTracker()
  const { configuration_set } = options
  return {
    test: false,
    signs: false,
    // The message, its base64, the JSON around it, and the bytes in transit.
    bufferedCopies: 4,
    send: (email, cut) => in_flight.track(deliver(client, email, { configuration_set, timeouts, cut })),
    async sender() {
      const ceiling = (await rate()) * (1 - RATE_MARGIN)
      return { key: sesSender(options.region), ceiling, saved_seconds: RATE_MARGIN }
    },
    check: () => checkAccount(client, timeouts),
    async close() {
      await in_flight.settled()
      client.destroy()
      unbound()
    },
  }
}

const createClient = (options: SesOptions, timeouts: SesTimeouts): SESv2Client =>
  new SESv2Client({
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    maxAttempts: 1,
    requestHandler: createHandler(options, timeouts),
  })

/** GetAccount is the only call that proves credentials and region without sending. */
async function checkAccount(
  client: SESv2Client,
  { answer_ms, credentials_ms }: SesTimeouts,
): Promise<string | null> {
  try {
    await awaitCredentials(client, credentials_ms)
    const { SendingEnabled } = await client.send(new GetAccountCommand({}), {
      abortSignal: AbortSignal.timeout(answer_ms),
    })
    return SendingEnabled === false ? 'sending is paused for this account' : null
  } catch (error) {
    // Its message may contain credentials.
    return `GetAccount failed: ${error instanceof Error ? error.name : 'Error'}`
  }
}

type Asking = { configuration_set: string | undefined; timeouts: SesTimeouts; cut: AbortSignal | undefined }

async function deliver(client: SESv2Client, email: OutgoingEmail, asking: Asking): Promise<EmailDelivery> {
  const { to, outcomes } = wireRecipients(email.recipients)
  if (to.length === 0) return { provider_message_id: null, outcomes: outcomes(new Map()) }
  const { id, outcome } = await attempt(client, email, to, asking)
  return { provider_message_id: id, outcomes: outcomes(new Map(to.map((address) => [address, outcome]))) }
}

async function attempt(
  client: SESv2Client,
  email: OutgoingEmail,
  to: string[],
  { configuration_set, timeouts: { answer_ms, credentials_ms }, cut }: Asking,
): Promise<{ id: string | null; outcome: Outcome }> {
  let begun = false
  try {
    const { command, size } = await toCommand(email, to, configuration_set)
    begun = true
    await awaitCredentials(client, credentials_ms)
    const { MessageId } = await client.send(command, {
      ...(cut ? { abortSignal: cut } : {}),
      requestTimeout: answer_ms + sendingTime(size),
    })
    const id = storableId(MessageId)
    return { id, outcome: { kind: 'accepted', detail: `SES accepted it as ${id ?? 'a message'}` } }
  } catch (error) {
    const fault: SesFault = error instanceof Error ? error : new Error(String(error))
    // Nothing was sent if the message couldn't be composed.
    if (!begun) return { id: null, outcome: { kind: 'deferred', detail: fault.message } }
    return { id: null, outcome: judgeFault(fault) }
  }
}

async function toCommand(email: OutgoingEmail, to: string[], configuration_set: string | undefined) {
  const from = wireAddress(parseMailbox(email.from)?.address ?? '')
  if (from === null) throw new Error("the sender isn't a single mailbox")
  const message = await composeMessage({ ...email, dkim: null })
  const command = new SendEmailCommand({
    FromEmailAddress: from,
    Destination: { ToAddresses: to },
    Content: { Raw: { Data: Buffer.concat(message.map(bytesOf)) } },
    EmailTags: [
      { Name: 'team_id', Value: email.team_id },
      { Name: 'email_id', Value: email.email_id },
    ],
    ...(configuration_set === undefined ? {} : { ConfigurationSetName: configuration_set }),
  })
  return { command, size: sizeOf(message) }
}

/**
 * Waits until the client has credentials: from the environment, files, a process, a token service or a metadata
 * service. The SDK caches and renews them, but doesn't limit its lookup.
 * @throws the SDK's Error, or one named after it on a timeout.
 */
async function awaitCredentials({ config }: SESv2Client, ms: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const words = `no credentials within ${ms / 1_000} s`
  const fault = Object.assign(new Error(words), { name: 'CredentialsProviderError' })
  const timer = setTimeout(reject, ms, fault)
  try {
    await Promise.race([config.credentials(), late])
  } finally {
    clearTimeout(timer)
  }
}
