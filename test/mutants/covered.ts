/**
 * The sources whose mutants `npm run test:mutants` makes, each with the tests that judge it: what decides, and says of
 * a text or a report what it means. Not here yet: suppressions, what events do to WhatsApp messages, how SNS's
 * certificates are fetched, the reader of SMTP's reports.
 */
export const COVERED: Record<string, readonly string[]> = {
  'api/hooks/relay-proofs.ts': ['test/api/hooks/relay-proofs.test.ts'],
  'api/hooks/sns-envelope.ts': ['test/api/hooks/sns-envelope.test.ts'],
  'db/accounts/people/roles.ts': ['test/db/accounts/people/roles.test.ts'],
  'db/accounts/plans/period.ts': ['test/db/accounts/plans/period.test.ts'],
  'db/channels/ladder.ts': ['test/db/channels/ladder.test.ts'],
  'db/audience/subscription/subscription.ts': ['test/db/audience/subscription/subscription.test.ts'],
  'db/messages/emails/apply-events.ts': ['test/db/messages/emails/applied-events.test.ts'],
  'db/messages/emails/status.ts': ['test/db/channels/ladder.test.ts'],
  'db/messages/emails/recipients.ts': ['test/db/messages/emails/recipients.test.ts'],
  'db/messages/whatsapp/template.ts': ['test/db/messages/whatsapp/template.test.ts'],
  'db/process/bucket.ts': ['test/db/process/bucket.test.ts'],
  'db/process/public-address.ts': ['test/db/process/public-address.test.ts'],
  'db/text/headers.ts': ['test/db/text/headers.test.ts'],
  'db/text/moments.ts': ['test/db/text/moments.test.ts'],
  'db/text/phone.ts': ['test/db/text/phone.test.ts'],
  'workers/delivery/breaker.ts': ['test/workers/delivery/breaker.test.ts'],
  'workers/delivery/verdict.ts': ['test/workers/delivery/verdict.test.ts'],
  'db/accounts/teams/rate-limit.ts': ['test/db/accounts/teams/limits.test.ts'],
  'db/accounts/teams/limits.ts': [
    'test/db/accounts/teams/limits.test.ts',
    'test/db/accounts/teams/locked-accounts.test.ts',
    'test/api/sends/accepts.test.ts',
  ],
  'db/text/address.ts': ['test/db/text/address.test.ts', 'test/db/text/mailbox.test.ts'],
  'workers/delivery/slots.ts': [
    'test/workers/delivery/slots.test.ts',
    'test/workers/delivery/yielding.test.ts',
  ],
  'db/text/slots.ts': ['test/db/text/slots.test.ts'],
  'workers/providers/smtp/replies.ts': [
    'test/workers/providers/smtp/replies.test.ts',
    'test/workers/providers/smtp/adapter.test.ts',
  ],
  'workers/providers/smtp/report-fields.ts': ['test/workers/providers/smtp/report-fields.test.ts'],
  'workers/providers/whatsapp/faults.ts': ['test/workers/providers/whatsapp/cloud.test.ts'],
  'workers/providers/ses/faults.ts': ['test/workers/providers/ses/faults.test.ts'],
  'workers/providers/ses/reports.ts': ['test/workers/providers/ses/reports.test.ts'],
  'workers/providers/whatsapp/reports.ts': ['test/workers/providers/whatsapp/reports.test.ts'],
  'workers/providers/relays/brevo.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/relays/header.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/relays/mailgun.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/relays/postmark.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/relays/read-event.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/relays/sendgrid.ts': ['test/workers/providers/relays/findings.test.ts'],
  'workers/providers/mail/effects.ts': ['test/workers/providers/mail/effects.test.ts'],
  'db/messages/emails/return-path.ts': [
    'test/db/messages/emails/return-path.test.ts',
    'test/workers/providers/smtp/reports.test.ts',
  ],
  'db/messages/webhooks/secret.ts': ['test/db/messages/webhooks/secret.test.ts'],
  'db/delivery/senders/circuit-breaker.ts': ['test/db/delivery/senders/circuit-breaker.test.ts'],
  'db/delivery/senders/pace.ts': [
    'test/db/delivery/senders/pace.test.ts',
    'test/db/delivery/senders/reserve.test.ts',
  ],
}
