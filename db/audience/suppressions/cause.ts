/** The causes of suppressions, their precedence, and the email that each stops. DECISIONS: Suppression. */
import type { SuppressTransactional } from '../../accounts/teams/suppress-transactional.ts'
import { CAUSES, type Cause, type SuppressionCause } from '../contacts/effect.ts'
import type { SuppressedAddress } from './addresses.sql.ts'

/** Why and since when an address is suppressed, and its first hard bounce. */
export type Suppression = Omit<SuppressedAddress, 'team_id' | 'identity' | 'email'>

const rankOf = (cause: Cause): number => CAUSES.indexOf(cause)

/** Merges the suppression of an address with a new one. */
export function merged(before: Suppression | null, next: Suppression): Suppression {
  if (before === null) return next
  const winner = rankOf(next.cause) > rankOf(before.cause) ? next : before
  const { bounced_at, bounce_response } = before.bounced_at === null ? next : before
  return { ...winner, bounced_at, bounce_response }
}

/** Creates the suppression for an event or a manual addition. A bounce is its own first hard bounce. */
export const suppressionBy = (
  cause: Cause,
  { since, response, ...from }: Pick<Suppression, 'since' | 'email_id' | 'report_id' | 'response'>,
): Suppression => ({
  ...{ cause, since, response, ...from },
  bounced_at: cause === 'bounce' ? since : null,
  bounce_response: cause === 'bounce' ? response : null,
})

/** Returns the status of a contact with this cause. */
export const statusBy = (cause: Cause): 'bounced' | 'complained' =>
  cause === 'complaint' ? 'complained' : 'bounced'

const WORDS = {
  bounce: 'permanent bounce',
  complaint: 'complaint',
  soft_bounces: 'soft bounces',
  manual: 'added by hand',
} as const satisfies Record<Cause, SuppressionCause['what']>

/** Returns the cause as contacts show it. */
export const causeShown = ({
  cause,
  since,
  email_id,
  report_id,
  response,
}: Omit<Suppression, 'bounced_at' | 'bounce_response'>): SuppressionCause => ({
  what: email_id === null && report_id === null ? WORDS.manual : WORDS[cause],
  at: since,
  ...{ email_id, report_id, detail: response },
})

/** True if a team that chose `stops` sends no transactional email to an address with this suppression. */
export function stopsTransactional(
  stops: SuppressTransactional,
  { cause, bounced_at }: Pick<Suppression, 'cause' | 'bounced_at'>,
): boolean {
  if (stops === 'nothing') return false
  if (bounced_at !== null) return true
  return stops === 'bounces_and_complaints' && (cause === 'complaint' || cause === 'manual')
}

/** Returns the detail of the event `suppressed`: date and response of the first bounce, or of the cause. */
export function suppressedDetail({
  cause,
  since,
  response,
  bounced_at,
  bounce_response,
}: Pick<Suppression, 'cause' | 'since' | 'response' | 'bounced_at' | 'bounce_response'>): string {
  const [verb, at, said] =
    bounced_at === null
      ? [cause === 'complaint' ? 'complained' : 'added manually', since, response]
      : ['bounced', bounced_at, bounce_response ?? '']
  const day = new Date(at).toISOString().slice(0, 10)
  return said === '' ? `${verb} on ${day}` : `${verb} on ${day}: ${said}`
}
