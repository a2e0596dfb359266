/**
 * What a mail server's refusal means for the contact: hard ends it at once, soft counts, none says nothing of it.
 * One page for both ways in which a server reports: its reply in the dialogue, and a status notification later.
 * Promises: pure; by enhanced status code (RFC 3463) alone. DECISIONS: Delivery reports, DSN classes.
 */
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'

/** What a refusal may mean; complaints and deliveries are reported otherwise. */
type RefusalEffect = Extract<ContactEffect, 'hard' | 'soft' | 'none'>

/** The recipient's address, and nobody else's: 5.1.7 and 5.1.8 are about the sender. */
const DEAD_ADDRESS: ReadonlySet<string> = new Set(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'])

/** Size, content, policy, a full mailbox and the sender's own address say nothing of the recipient's. */
const NOT_THE_ADDRESS = /^5\.(?:1\.[78]|2\.2|3\.4|6\.\d+|7\.\d+)$/

/**
 * A recipient refused for good in the dialogue. The refusing server may be any relay on the way, so that only a code
 * that names the address is proof.
 * @param code the reply's three digits. @param enhanced its enhanced status code, '' without one.
 */
export function effectOfRefusal(code: number, enhanced: string): RefusalEffect {
  if (DEAD_ADDRESS.has(enhanced)) return 'hard'
  return enhanced === '' && code === 550 ? 'soft' : 'none'
}

/**
 * A recipient that somebody who knows calls gone for good: the address's fault, unless the code says otherwise.
 * @param status the enhanced status code, '' without one.
 */
export const effectOfHardBounce = (status: string): RefusalEffect =>
  NOT_THE_ADDRESS.test(status) ? 'none' : 'hard'

/**
 * A recipient that a notification calls failed: the recipient's own side has ended it, for a reason that is the
 * address's unless the code says otherwise.
 * @param status the enhanced status code, '' without one.
 */
export function effectOfFailure(status: string): RefusalEffect {
  if (status.startsWith('4.')) return 'soft'
  return status.startsWith('5.') ? effectOfHardBounce(status) : 'none'
}
