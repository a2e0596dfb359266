/**
 * An SMTP server that accepts email for anyone and stores it, complete and readable. It is the sandbox of
 * `npm start` and, with a script instead of the magic recipients, the sink of tests. It keeps the newest
 * messages within its limits, with the bytes from the wire. Magic local parts are those of test teams
 * (workers/providers/test/magic-recipients.ts). Reports start at `onAccepted`. deferred@ is deferred twice
 * with 451 4.3.0 per sender and recipient, then accepted, then deferred again. The server rejects refused@
 * with 550 5.1.1.
 */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerError, type SMTPServerOptions } from 'smtp-server'
import { emailReply } from '../../workers/providers/test/magic-recipients.ts'
import { type Keep, keepNothing } from './keep.ts'

export type SandboxMessage = {
  id: string
  received_at: string
  mail_from: string
  rcpt_to: string[]
  size: number
  raw: Buffer
  /** The message read by postal-mime, at the first call; without content when it cannot be read. */
  parsed(): Promise<Email>
}

/** A reply such as `451 4.3.0 Try later`; nothing means accepted. A script delays by awaiting. */
type SmtpReply = string | undefined

/** The reply to send instead of 250. `onMessage` replies to the final dot, with the complete message. */
export type SmtpScript = {
  onConnect?: () => SmtpReply | Promise<SmtpReply>
  onMail?: (mail_from: string) => SmtpReply | Promise<SmtpReply>
  onRcpt?: (recipient: string, mail_from: string) => SmtpReply | Promise<SmtpReply>
  onMessage?: (message: SandboxMessage) => SmtpReply | Promise<SmtpReply>
}

export type SandboxOptions = {
  /** 0 picks a free one. */
  port: number
  host?: string
  /** The magic recipients when absent. */
  script?: SmtpScript
  /** Called once per recipient of an accepted message. Reports start here. */
  onAccepted?: (message: SandboxMessage, recipient: string) => void
  keep_messages?: number
  keep_bytes?: number
  /** Where messages are stored across runs. The default is memory only. */
  keep?: Keep
  /** Further options of smtp-server: TLS, logins, extensions to hide. */
  server?: SMTPServerOptions
}

export type SmtpSandbox = {
  port: number
  /** Returns the stored messages, oldest first. */
  messages(): readonly SandboxMessage[]
  clear(): void
  close(): Promise<void>
}

const KEEP_MESSAGES = 1_000
const KEEP_BYTES = 100 * 1024 * 1024
const LARGEST_MESSAGE = 50 * 1024 * 1024
const UNREADABLE: Email = { headers: [], headerLines: [], attachments: [], subject: '(unreadable)' }
/** Limits the remembered deferred@ pairs of a long-running sandbox. */
const REMEMBERED_PAIRS = 10_000

/** Resolves once it accepts connections, and rejects if the port is in use. */
export async function startSmtpSandbox(options: SandboxOptions): Promise<SmtpSandbox> {
  const kept = await openStore(options)
  const script = options.script ?? magicScript()
  const take = async (message: SandboxMessage): Promise<SmtpReply> => {
    const reply = await script.onMessage?.(message)
    if (reply !== undefined) return reply
    kept.add(message)
    setImmediate(() => {
      for (const recipient of message.rcpt_to) options.onAccepted?.(message, recipient)
    })
  }
  const server = new SMTPServer({ ...serverOptions(script, take), ...options.server })
  // Clients that disconnect don't matter.
  server.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject)
    server.listen(options.port, options.host ?? '127.0.0.1', resolve)
  })
  return {
    port: (server.server.address() as AddressInfo).port,
    messages: kept.all,
    clear: kept.clear,
    close: async () => {
      await new Promise<void>((resolve) => server.close(() => resolve()))
      await kept.settled()
    },
  }
}

function serverOptions(
  script: SmtpScript,
  take: (message: SandboxMessage) => Promise<SmtpReply>,
): SMTPServerOptions {
  return {
    name: 'sandbox.test',
    size: LARGEST_MESSAGE,
    rejectOversized: true,
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 200,
    onConnect: (_session, done) => answer(done, script.onConnect?.()),
    onMailFrom: ({ address }, _session, done) => answer(done, script.onMail?.(address)),
    onRcptTo: ({ address }, { envelope }, done) =>
      answer(done, script.onRcpt?.(address, envelope.mailFrom ? envelope.mailFrom.address : '')),
    onData: (stream, { envelope }, done) => {
      const mail_from = envelope.mailFrom ? envelope.mailFrom.address : ''
      const rcpt_to = envelope.rcptTo.map(({ address }) => address)
      const reply = buffer(stream).then((raw) => take(newMessage(mail_from, rcpt_to, raw)))
      answer(done, reply)
    },
  }
}

/** Hands a reply to smtp-server, which wants the code on an error. */
function answer(done: (error?: Error | null) => void, reply: SmtpReply | Promise<SmtpReply>): void {
  const settle = (words: SmtpReply): void => {
    if (words === undefined) done()
    else {
      const error: SMTPServerError = new Error(words.slice(4))
      error.responseCode = Number(words.slice(0, 3))
      done(error)
    }
  }
  Promise.resolve(reply).then(settle, (error: unknown) => settle(`451 4.3.0 ${String(error)}`))
}

type Arrival = Pick<SandboxMessage, 'id' | 'received_at' | 'mail_from' | 'rcpt_to'>

function messageOf(arrival: Arrival, raw: Buffer): SandboxMessage {
  let reading: Promise<Email> | undefined
  return {
    ...arrival,
    size: raw.length,
    raw,
    parsed() {
      reading ??= PostalMime.parse(raw).catch(() => UNREADABLE)
      return reading
    },
  }
}

const newMessage = (mail_from: string, rcpt_to: string[], raw: Buffer): SandboxMessage =>
  messageOf({ id: randomUUID(), received_at: new Date().toISOString(), mail_from, rcpt_to }, raw)

/** Converts a message to its file format and back. */
const stored = ({ id, received_at, mail_from, rcpt_to, raw }: SandboxMessage): string =>
  JSON.stringify({ id, received_at, mail_from, rcpt_to, raw: raw.toString('base64') })

function restored(text: string): SandboxMessage {
  const { raw, ...arrival } = JSON.parse(text) as Arrival & { raw: string }
  return messageOf(arrival, Buffer.from(raw, 'base64'))
}

const nameOf = ({ received_at, id }: SandboxMessage): string => `${received_at}-${id}`

/** The newest messages within the bounds, those of an earlier run first. */
async function openStore({ keep = keepNothing, ...bounds }: SandboxOptions) {
  const most_messages = bounds.keep_messages ?? KEEP_MESSAGES
  const most_bytes = bounds.keep_bytes ?? KEEP_BYTES
  const messages: SandboxMessage[] = (await keep.load()).map(restored)
  let bytes = messages.reduce((sum, { size }) => sum + size, 0)
  return {
    all: (): readonly SandboxMessage[] => messages,
    settled: keep.settled,
    add(message: SandboxMessage): void {
      messages.push(message)
      keep.put(nameOf(message), stored(message))
      bytes += message.size
      while (messages.length > most_messages || (bytes > most_bytes && messages.length > 1)) {
        const oldest = messages.shift()
        if (oldest) keep.remove(nameOf(oldest))
        bytes -= oldest?.size ?? 0
      }
    },
    clear(): void {
      for (const message of messages) keep.remove(nameOf(message))
      messages.length = 0
      bytes = 0
    },
  }
}

/** The magic recipients of the header above. */
function magicScript(): SmtpScript {
  const tries = new Map<string, number>()
  const remember = (pair: string, count: number): void => {
    tries.set(pair, count)
    const oldest = tries.keys().next().value
    if (tries.size > REMEMBERED_PAIRS && oldest !== undefined) tries.delete(oldest)
  }
  return {
    onRcpt(recipient, mail_from) {
      const pair = `${mail_from} ${recipient.toLowerCase()}`
      const before = tries.get(pair) ?? 0
      tries.delete(pair)
      const reply = emailReply(recipient, before)
      if (reply === 'refused') return '550 5.1.1 No such mailbox'
      if (reply === 'taken') return undefined
      remember(pair, before + 1)
      return `451 4.3.0 Try again later (${before + 1} of 2)`
    },
  }
}
