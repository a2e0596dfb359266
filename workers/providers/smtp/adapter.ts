/**
 * Sends email through an SMTP server over pooled keep-alive connections. It never throws, and returns one outcome per
 * recipient. Every send has a time limit. The envelope contains exactly the given return path and recipients, one
 * address each. replies.ts judges responses and mail/message.ts composes the message.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createTransport, type MailMessage, type NodemailerError } from 'nodemailer'
import SMTPPool, { type SMTPPoolSentMessageInfo } from 'nodemailer/lib/smtp-pool'
import { joinSignals } from '../../../db/process/joined-signal.ts'
import type { Relay } from '../../../db/validation/relays.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { composeMessage } from '../mail/message.ts'
import { type Pieces, sizeOf } from '../mail/pieces.ts'
import { wireAddress, wireRecipients } from '../mail/recipients.ts'
import { relaySender } from '../mail/relay-sender.ts'
import type { Describe, EmailDelivery, EmailProvider, Outcome, OutgoingEmail } from '../provider.ts'
import { relayHeaderLine, withoutRelayHeader } from '../relays/header.ts'
import { createSendTracker } from '../send-tracker.ts'
import { sendingTime } from '../sending-time.ts'
import {
  type Attempt,
  outcomesOfFailure,
  outcomesOfSuccess,
  senderRejection,
  withSetting,
} from './replies.ts'
import { inSlices } from './slices.ts'
import { openSocket } from './socket.ts'
import { readSmtpUrl, requiresTls, withWayOut } from './url.ts'

/**
 * Milliseconds. `total_ms` limits one send from the wait for a connection to the final dot, plus more for a large
 * message (sending-time.ts). `answer_ms` limits the wait for the final response, because servers scan content then
 * (RFC 5321 §4.5.3.2.6 recommends 10 minutes).
 */
export type SmtpTimeouts = { connect_ms: number; greeting_ms: number; total_ms: number; answer_ms: number }

export type SmtpOptions = {
  url: string
  max_connections: number
  /** The hosted relay behind the URL, if its reports are accepted. */
  hosted?: Relay
  /** The name given in EHLO. The default is the machine's own. The URL's `name` overrides it. */
  hostname?: string
  /** True if acceptance by the relay counts as delivery, so delivery reports aren't requested. */
  delivers?: boolean
  timeouts?: Partial<SmtpTimeouts>
}

const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  connect_ms: 10_000,
  greeting_ms: 10_000,
  total_ms: 60_000,
  answer_ms: 600_000,
}
const IDLE_TIMEOUT_MS = 15_000

/** The initial and maximum rate of a relay that has limited us, in sends per second. */
const NOMINAL_RATE = 200

type TrackedAttempt = Attempt & { message: Pieces; onHandedOver: () => void }
type Sending = {
  timeouts: SmtpTimeouts
  describe: Describe
  cut: AbortSignal | undefined
  hosted: Relay | undefined
  delivers: boolean
}

/** @throws Error if the URL isn't an SMTP server's. The message doesn't repeat it. */
export function createSmtpProvider(options: SmtpOptions): EmailProvider {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const { secrets } = readSmtpUrl(options.url)
  const describe: Describe = (words) => storableWords(words, secrets)
  const pool = createPool(options, timeouts)
  const in_flight = createSendTracker()
  // A relay has no rate limit until it requests one. Its connections are the only limit.
  const sender = { key: relaySender(options.url), ceiling: NOMINAL_RATE, on_demand: true }
  let closed = false

  return {
    test: false,
    signs: true,
    bufferedCopies: 0,
    async send(email, cut) {
      if (closed) return deferAll(email, 'the SMTP provider is closed')
      const { hosted, delivers = false } = options
      return in_flight.track(deliver(pool, email, { timeouts, describe, cut, hosted, delivers }))
    },
    sender: async () => sender,
    async check() {
      // Not through the pool, whose timeout is for a final dot.
      const once = createTransport({
        ...connectionOf(options, timeouts),
        socketTimeout: timeouts.greeting_ms,
      })
      const asked = once.verify().then(
        () => null,
        (error: NodemailerError) => describe(withSetting(error, withWayOut(error.message))),
      )
      const late = `the greeting did not end within ${timeouts.total_ms} ms`
      return Promise.race([asked, sleep(timeouts.total_ms, late, { ref: false })])
    },
    async close() {
      closed = true
      await in_flight.settled()
      pool.close()
    },
  }
}

const connectionOf = ({ url, hostname }: SmtpOptions, { connect_ms, greeting_ms }: SmtpTimeouts) => ({
  url,
  ...(hostname === undefined ? {} : { name: hostname }),
  ...(requiresTls(url) ? { requireTLS: true } : {}),
  connectionTimeout: connect_ms,
  dnsTimeout: connect_ms,
  greetingTimeout: greeting_ms,
  getSocket: openSocket,
})

const createPool = (options: SmtpOptions, timeouts: SmtpTimeouts): SMTPPool =>
  new SMTPPool({
    ...connectionOf(options, timeouts),
    maxConnections: options.max_connections,
    // Our own timeouts come first, because they know a send's progress.
    socketTimeout: timeouts.total_ms + timeouts.answer_ms,
    idleTimeout: IDLE_TIMEOUT_MS,
  })

type Envelope = {
  from: string
  to: string[]
  /** Announced before the message is sent (RFC 1870), so that a server with a lower limit rejects it then. */
  size: number
  /** nodemailer lists the rejected recipients here, even if the send fails for all. */
  rejectedErrors?: NodemailerError[]
}

/**
 * Sends an attempt's message through the pool: the envelope and the composed message, without nodemailer's mailer,
 * which composes and parses them again (measured: a quarter of the CPU time of an unsigned email).
 */
function sendThrough(
  pool: SMTPPool,
  attempt: TrackedAttempt,
  { from, messageId, signal }: { from: string; messageId: string; signal: AbortSignal },
  dsn: ReturnType<typeof wantedReports>,
): Promise<SMTPPoolSentMessageInfo> {
  const envelope: Envelope = { from, to: [...attempt.to], size: sizeOf(attempt.message) }
  attempt.refusals = () => envelope.rejectedErrors ?? []
  attempt.isBegun = () => envelope.rejectedErrors !== undefined
  const message = {
    getEnvelope: () => envelope,
    messageId: () => messageId,
    getHeader: () => messageId,
    createReadStream: () =>
      inSlices(attempt.message, () => {
        attempt.handed_over = true
        attempt.onHandedOver()
      }),
  }
  return new Promise((resolve, reject) => {
    const mail = { data: { dsn, signal }, message } as unknown as MailMessage<SMTPPoolSentMessageInfo>
    pool.send(mail, (error, info) => {
      if (error || !info) reject(error ?? new Error('the server gave no response'))
      else resolve(info)
    })
  })
}

/** A relay that checks sender ownership may reject the From domain's own return path. The shared one is then used. */
async function deliver(pool: SMTPPool, email: OutgoingEmail, sending: Sending): Promise<EmailDelivery> {
  const first = await deliverOnce(pool, email, sending)
  const { shared_return_path } = email
  if (shared_return_path === null || first.senderRejection === null) return first.delivery
  const { delivery } = await deliverOnce(pool, { ...email, return_path: shared_return_path }, sending)
  const isReason = [...delivery.outcomes.values()].some(({ kind }) => kind === 'accepted')
  return isReason ? { ...delivery, rejected_return_path: sending.describe(first.senderRejection) } : delivery
}

async function deliverOnce(pool: SMTPPool, email: OutgoingEmail, sending: Sending) {
  const { to, outcomes: outcomesOf } = wireRecipients(email.recipients)
  const { found, senderRejection } = to.length === 0 ? NOT_TRIED : await attemptTo(pool, email, to, sending)
  const outcomes = outcomesOf(found)
  const accepted = [...outcomes.values()].some(({ kind }) => kind === 'accepted')
  const delivery = { provider_message_id: accepted ? email.message_id : null, outcomes }
  return { delivery, senderRejection }
}

/** The result of one message: an outcome per recipient, and why the server rejected its sender, if it did. */
type Attempted = { found: Map<string, Outcome>; senderRejection: string | null }
const NOT_TRIED: Attempted = { found: new Map(), senderRejection: null }

async function attemptTo(
  pool: SMTPPool,
  email: OutgoingEmail,
  to: string[],
  { timeouts: { total_ms, answer_ms }, describe, cut, hosted, delivers }: Sending,
): Promise<Attempted> {
  const limit = new AbortController()
  const until = (ms: number) => setTimeout(() => limit.abort(`not finished within ${ms} ms`), ms)
  let timer = until(total_ms)
  const attempt: TrackedAttempt = {
    message: [],
    to,
    handed_over: false,
    isBegun: () => false,
    refusals: () => [],
    onHandedOver() {
      clearTimeout(timer)
      timer = until(answer_ms)
    },
  }
  const joined = joinSignals(limit.signal, cut)
  try {
    const from = wireAddress(email.return_path)
    if (from === null) throw new Error("the return path isn't a single address")
    attempt.message = await composeFor(hosted, email)
    clearTimeout(timer)
    timer = until(total_ms + sendingTime(sizeOf(attempt.message)))
    const sent = { from, messageId: `<${email.message_id}>`, signal: joined.signal }
    const reports = wantedReports(to, delivers || email.is_broadcast)
    const info = await sendThrough(pool, attempt, sent, reports)
    const found = outcomesOfSuccess(attempt, info.response, { describe, delivers })
    return { found, senderRejection: null }
  } catch (cause) {
    const error: NodemailerError = cause instanceof Error ? cause : new Error(String(cause))
    if (limit.signal.aborted) error.message = String(limit.signal.reason)
    else if (cut?.aborted) error.message = 'the worker shut down'
    const found = outcomesOfFailure(attempt, error, describe)
    return { found, senderRejection: senderRejection(attempt, error) }
  } finally {
    clearTimeout(timer)
    joined.release()
  }
}

async function composeFor(hosted: Relay | undefined, email: OutgoingEmail): Promise<Pieces> {
  if (hosted === undefined) return composeMessage(email)
  const [first = '', ...rest] = await composeMessage(withoutRelayHeader(hosted, email))
  return [`${relayHeaderLine(hosted, email.reference)}\r\n${first}`, ...rest]
}

/**
 * The reports to request from a server that offers them (RFC 3461). Delivery reports would double the load of a
 * broadcast. The client names one original recipient for all, so it is omitted if there are several.
 */
const wantedReports = (to: readonly string[], failuresOnly: boolean) => ({
  notify: failuresOnly ? 'FAILURE,DELAY' : 'SUCCESS,FAILURE,DELAY',
  ret: 'HDRS' as const,
  ...(to.length === 1 ? { orcpt: `rfc822;${to[0]}` } : {}),
})

const deferAll = (email: OutgoingEmail, detail: string): EmailDelivery => ({
  provider_message_id: null,
  outcomes: new Map(email.recipients.map((recipient) => [recipient, { kind: 'deferred', detail }])),
})
