/**
 * Simulates Mailgun: its reports on the magic recipients, with its signature and the variables of the
 * message. It is independent of the code that reads them.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmailReport, emailReports } from '../../workers/providers/test/magic-recipients.ts'
import { postUntilTaken } from './reports.ts'
import type { SandboxMessage } from './smtp.ts'

export type RelayOptions = {
  /** The service's POST /hooks/relay. */
  url: string
  /** The signing key. */
  secret: string
  /** Between a message and the reports about it, in milliseconds. */
  delay_ms?: number
  /** Called when a report could not be posted. */
  warn?: (line: string) => void
}

type Part = Record<string, unknown>

const DELIVERED: Part = { event: 'delivered', 'delivery-status': { code: 250, message: 'OK' } }
const BOUNCED: Part = {
  ...{ event: 'failed', severity: 'permanent', reason: 'bounce' },
  'delivery-status': { code: 550, message: '5.1.1 The mailbox does not exist' },
}

const EVENTS: Record<EmailReport, Part> = {
  delivered: DELIVERED,
  bounced: BOUNCED,
  complained: { event: 'complained' },
  opened: { event: 'opened', 'client-info': { 'user-agent': 'Sandbox' } },
  clicked: { event: 'clicked', url: 'https://example.com/' },
}

/** The value of a header, unfolded. '' without it. */
function headerOf(raw: Buffer, name: string): string {
  const [head = ''] = raw.toString('latin1').split('\r\n\r\n', 1)
  const fields = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')
  const own = fields.find((field) => field.toLowerCase().startsWith(`${name.toLowerCase()}:`)) ?? ''
  return own.slice(name.length + 1).trim()
}

function signed(secret: string, event: Part): string {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const token = randomBytes(25).toString('hex')
  const signature = createHmac('sha256', secret).update(`${timestamp}${token}`).digest('hex')
  return JSON.stringify({ signature: { timestamp, token, signature }, 'event-data': event })
}

/** Makes the callback for each accepted recipient. It reports on magic ones a moment later. */
export function createMailgunReporter(
  options: RelayOptions,
): (message: SandboxMessage, recipient: string) => void {
  const { url, secret, delay_ms = 1_200, warn = () => {} } = options
  return ({ raw }, recipient) => {
    const variables = headerOf(raw, 'X-Mailgun-Variables')
    const message = { headers: { 'message-id': headerOf(raw, 'Message-ID').replace(/[<>]/g, '') } }
    const report = async (): Promise<void> => {
      for (const kind of emailReports(recipient) ?? []) {
        await sleep(delay_ms)
        const about = { id: randomUUID(), timestamp: Date.now() / 1_000, recipient, message }
        const all = {
          ...EVENTS[kind],
          ...about,
          'user-variables': variables === '' ? {} : JSON.parse(variables),
        }
        await postUntilTaken(url, { 'Content-Type': 'application/json' }, signed(secret, all))
      }
    }
    report().catch((error: unknown) => warn(`could not send the report about ${recipient}: ${String(error)}`))
  }
}
