/** The facts of the email channel that need no query: names, statuses and quotas. Pure. */

import { RELAYS } from '../validation/relays.ts'
import type { Facts } from './facts.ts'

/** The provider name for reports of mail servers. */
export const MAIL_REPORTER = 'smtp'

/** Lowest status first. */
export const EMAIL_LADDER = [
  'queued',
  'sent',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
] as const

/** How the detail of a bounce starts if servers deferred the email for too long (RFC 3463: delivery time expired). */
export const RETRIES_ENDED = '4.4.7'

export const EMAIL_FACTS = {
  name: 'email',
  title: 'Email',
  noun: 'email',
  path: 'emails',
  scope: 'emails:send',
  ladder: EMAIL_LADDER,
  quota: {
    name: 'emails',
    title: 'Emails',
    noun: 'emails',
    limit: 'email_limit',
    used: 'emails_used',
    // A paid plan has the limits of its first tier.
    defaults: { free: 5_000, paid: null, custom: null },
  },
  webhooks: [
    ...['sent', 'delivered', 'delivery_delayed', 'bounced', 'complained', 'opened', 'clicked'],
    ...['failed', 'suppressed'],
  ],
  webhooks_apart: [],
  webhook_names: { deferred: 'delivery_delayed', delayed: 'delivery_delayed', gave_up: 'failed' },
  providers: [MAIL_REPORTER, 'ses', ...RELAYS],
  provider_names: {
    [MAIL_REPORTER]: 'SMTP relay',
    ...{ ses: 'Amazon SES', brevo: 'Brevo', mailgun: 'Mailgun' },
    ...{ postmark: 'Postmark', sendgrid: 'SendGrid' },
  },
  lines: ['email', 'email_batch', 'broadcast'],
} as const satisfies Facts
