/**
 * Complete events as SES publishes them, including fields that we don't use. From the examples in AWS's guide
 * (event publishing to SNS, and the older feedback notifications).
 */
import type { RawReport } from '../../workers/providers/report.ts'
import { aNotification, type Fields } from './sns.ts'

export const TEAM_ID = '0198d7a0-0000-7000-8000-000000000001'
export const EMAIL_ID = '0198d7a0-0000-7000-8000-000000000002'
export const SES_ID = '0102018f-7c7b2a0e-EXAMPLE-000000'

type Json = Record<string, unknown>

/** Builds the `mail` part. Event publishing includes tags, the older format doesn't. */
export const sesMail = (changes: Json = {}): Json => ({
  timestamp: '2026-03-01T12:00:00.000Z',
  messageId: SES_ID,
  source: 'hello@demo.test',
  sourceArn: 'arn:aws:ses:eu-west-1:123456789012:identity/demo.test',
  sendingAccountId: '123456789012',
  destination: ['ana@example.com', 'bo@example.com'],
  headersTruncated: false,
  headers: [{ name: 'From', value: 'Demo <hello@demo.test>' }],
  commonHeaders: { from: ['Demo <hello@demo.test>'], messageId: SES_ID, subject: 'Hello' },
  tags: {
    'ses:configuration-set': ['main'],
    'ses:source-ip': ['192.0.2.1'],
    team_id: [TEAM_ID],
    email_id: [EMAIL_ID],
  },
  ...changes,
})

/** Builds an event in the format of event publishing. */
export const sesEvent = (eventType: string, part: Json, mail: Json = {}): Json => ({
  eventType,
  mail: sesMail(mail),
  ...part,
})

/** Builds the stored report: SNS's envelope with the event. */
export const sesReport = (event: unknown, changes: Fields = {}): RawReport => {
  const Message = typeof event === 'string' ? event : `${JSON.stringify(event)}\n`
  return {
    body: Buffer.from(JSON.stringify(aNotification({ Message, ...changes }), null, 2)),
    received_at: new Date('2026-03-01T12:34:56.000Z'),
  }
}

export const bounce = (
  type: string,
  subType: string,
  recipients: Json[] = [{ emailAddress: 'ana@example.com' }],
) => ({
  bounce: {
    feedbackId: '0102018f-bounce',
    bounceType: type,
    bounceSubType: subType,
    bouncedRecipients: recipients,
    timestamp: '2026-03-01T12:00:05.000Z',
    remoteMtaIp: '192.0.2.9',
    reportingMTA: 'dsn; a6-1.smtp-out.eu-west-1.amazonses.com',
  },
})

export const complaint = (type: string | undefined, recipients = ['ana@example.com']) => ({
  complaint: {
    feedbackId: '0102018f-complaint',
    complaintSubType: null,
    complainedRecipients: recipients.map((emailAddress) => ({ emailAddress })),
    timestamp: '2026-03-01T13:00:00.000Z',
    userAgent: 'ExampleCorp Feedback Loop (V0.01)',
    ...(type === undefined ? {} : { complaintFeedbackType: type }),
    arrivalDate: '2026-03-01T12:59:00.000Z',
  },
})

export const delivery = (recipients: string[], changes: Json = {}) => ({
  delivery: {
    timestamp: '2026-03-01T12:00:03.000Z',
    processingTimeMillis: 3_000,
    recipients,
    smtpResponse: '250 2.6.0 Message received',
    remoteMtaIp: '192.0.2.9',
    reportingMTA: 'a6-1.smtp-out.eu-west-1.amazonses.com',
    ...changes,
  },
})
