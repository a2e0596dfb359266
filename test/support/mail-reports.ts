/**
 * Set-up for tests of mail servers' reports: an email of ours, generated reports about it, and their parser.
 */
import { returnPath } from '../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { createSmtpReportReader } from '../../workers/providers/smtp/reports.ts'

export const secrets = createSecrets('a secret key for tests, thirty-two characters or more')
export const ref = {
  team_id: '0190a1b2-0000-7000-8000-00000000000a',
  id: '0190a1b2-0000-7fff-bfff-ffffffffffff',
}
export const mail_from = returnPath(secrets, ref, 'bounces.example.com') ?? ''
export const raw = Buffer.from(
  'From: hello@example.com\r\nTo: ana@example.org\r\nSubject: Hello\r\n\r\nHello\r\n',
)
export const received_at = new Date('2026-03-01T12:00:00Z')
export const at = new Date('2026-03-01T11:59:00Z')
/** Dates in email have no fractions, so the report counts from the end of the second. */
export const reported_at = '2026-03-01T11:59:00.999Z'

export const readBytes = async (body: Buffer | string) =>
  await createSmtpReportReader(secrets)({ body: Buffer.from(body), received_at })

type Events = Awaited<ReturnType<typeof readBytes>>
export const keysOf = (events: Events) => events.map((event) => 'event_key' in event && event.event_key)

/** Returns the error of a reading without events. */
export const faultOf = (reading: Promise<unknown>): Promise<unknown> =>
  reading.catch((error: unknown) => error)

/** A status part about one recipient. */
export const GONE =
  'X: y\r\n\r\nFinal-Recipient: rfc822;ana@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n'

/** Builds a report to `to` with the given status part and other returned parts. */
export const report = (
  to: string,
  status: string,
  type = 'message/delivery-status',
  returned: readonly (readonly [type: string, text: string])[] = [],
): string =>
  [
    `Date: Sun, 01 Mar 2026 12:59:00 +0100 (CET)`,
    `To: ${to}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b1"',
    '',
    ...[[type, status] as const, ...returned].flatMap(([type, text]) => [
      '--b1',
      `Content-Type: ${type}`,
      '',
      text,
    ]),
    '--b1--',
    '',
  ].join('\r\n')
