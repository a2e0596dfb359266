/**
 * A real SMTP server for tests. It records every raw message with its envelope and responds as scripted. It
 * is the sandbox's server with a script instead of magic recipients, and closes with the test.
 */
import { appendFileSync } from 'node:fs'
import type { SMTPServerOptions } from 'smtp-server'
import { type SandboxMessage, type SmtpSandbox, type SmtpScript, startSmtpSandbox } from '../sandbox/smtp.ts'

export type SmtpSink = SmtpSandbox & {
  url: string
  /** Returns the recipients of each message. */
  recipients(): string[][]
  /** Returns the latest message. @throws Error if none has arrived. */
  last(): SandboxMessage
}

export type SinkOptions = {
  /** Each Message-ID is appended to this file, one per line, before the 250 reply. */
  id_file?: string
  server?: SMTPServerOptions
}

/** The part of a test runner's API that is used here. */
export type Teardown = { teardown(close: () => Promise<void>): void }

/** Starts a sink on a free port of 127.0.0.1. */
export async function startSmtpSink(t: Teardown, script: SmtpScript = {}, options: SinkOptions = {}) {
  const { id_file, server } = options
  const sandbox = await startSmtpSandbox({
    port: 0,
    script: id_file === undefined ? script : { ...script, onMessage: noting(id_file, script) },
    keep_messages: Number.POSITIVE_INFINITY,
    keep_bytes: Number.POSITIVE_INFINITY,
    ...(server ? { server } : {}),
  })
  t.teardown(() => sandbox.close())
  return {
    ...sandbox,
    url: `${server?.secure ? 'smtps' : 'smtp'}://127.0.0.1:${sandbox.port}`,
    recipients: () => sandbox.messages().map(({ rcpt_to }) => rcpt_to),
    last() {
      const message = sandbox.messages().at(-1)
      if (!message) throw new Error('no message has arrived')
      return message
    },
  }
}

/** Returns the Message-ID of the header without its angle brackets, or '' if it is missing. */
export function messageIdOf(message: SandboxMessage): string {
  const header = message.raw.toString('latin1').split('\r\n\r\n', 1)[0] ?? ''
  return /^message-id:\s*<([^>\r\n]*)>/im.exec(header)?.[1] ?? ''
}

/**
 * Written in one call and before the reply, so that a killed worker can't have received a reply that isn't in
 * the file.
 */
const noting =
  (id_file: string, script: SmtpScript): NonNullable<SmtpScript['onMessage']> =>
  async (message) => {
    const reply = await script.onMessage?.(message)
    if (reply === undefined) appendFileSync(id_file, `${messageIdOf(message)}\n`)
    return reply
  }
