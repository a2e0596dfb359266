/**
 * The sources whose mutants `npm run test:mutants` makes, each with the tests that judge it: what decides by itself,
 * under tests that need no database. Not here yet: addresses, slots, providers' replies and reports, and
 * all whose tests need a database (limits, pace, circuit breaker, consent, conditions, what reports do).
 */
export const COVERED: Record<string, readonly string[]> = {
  'db/accounts/people/roles.ts': ['test/db/accounts/people/roles.test.ts'],
  'db/accounts/plans/period.ts': ['test/db/accounts/plans/period.test.ts'],
  'db/channels/ladder.ts': ['test/db/channels/ladder.test.ts'],
  'db/messages/emails/status.ts': ['test/db/channels/ladder.test.ts'],
  'db/messages/emails/recipients.ts': ['test/db/messages/emails/recipients.test.ts'],
  'db/messages/whatsapp/template.ts': ['test/db/messages/whatsapp/template.test.ts'],
  'db/process/bucket.ts': ['test/db/process/bucket.test.ts'],
  'db/process/public-address.ts': ['test/db/process/public-address.test.ts'],
  'db/text/headers.ts': ['test/db/text/headers.test.ts'],
  'db/text/phone.ts': ['test/db/text/phone.test.ts'],
  'workers/delivery/breaker.ts': ['test/workers/delivery/breaker.test.ts'],
  'workers/delivery/verdict.ts': ['test/workers/delivery/verdict.test.ts'],
}
