/** Encrypts all stored secrets again with SECRET_KEY after it was replaced, in one transaction. */
import { type By, record } from '../accounts/audit/record.ts'
import { resealAll } from '../accounts/domains/rekey.ts'
import { resealSecrets } from '../messages/webhooks/endpoints.ts'
import { resealNumbers } from '../messages/whatsapp/numbers.ts'
import { plural } from '../plural.ts'
import type { Secrets } from '../process/secrets.ts'

/**
 * @returns how many of each were encrypted again.
 * @throws RequestError bad_request with the name of a secret that can't be decrypted.
 */
export async function reseal({ secrets, ...by }: By & { secrets: Secrets }) {
  const { tx } = by
  const webhooks = await resealSecrets({ tx, secrets })
  const numbers = await resealNumbers({ tx, secrets })
  const domains = await resealAll({ tx, secrets })
  const others = numbers > 0 ? `, ${plural(numbers, 'WhatsApp number')}` : ''
  const subject = `${plural(domains, 'domain')}, ${plural(webhooks, 'webhook')}${others}`
  await record(by, { team_id: null, action: 'secret.reseal', subject })
  return { domains, webhooks, numbers }
}
