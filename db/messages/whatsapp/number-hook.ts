/** The hook of a number whose events a customer's own Meta app signs. A number without an app secret has none. */
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { HookScope } from './cut-post.ts'
import { numberCredentials } from './numbers.sql.ts'
import { openCredential } from './numbers.ts'

export const NUMBER_NAME = /^[a-z0-9-]{1,64}$/

/** The fields that an app must subscribe to, for a manual check. */
export const WEBHOOK_FIELDS: readonly string[] = [
  ...['messages', 'message_template_status_update', 'message_template_components_update'],
  ...['message_template_quality_update', 'template_category_update', 'phone_number_quality_update'],
  ...['phone_number_name_update', 'account_update', 'account_alerts', 'business_capability_update'],
  'user_preferences',
]

/** Returns the path of the number's hook. */
export const hookPath = (name: string): string => `/hooks/whatsapp/${name}`

const verifyData = (name: string): Buffer => Buffer.from(`verify/${name}`)

/** Returns the verify token, which Meta sends in the handshake of a number's own hook. */
export const deriveVerifyToken = (secrets: Secrets, name: string): string =>
  secrets.sign('whatsapp', verifyData(name), 16).toString('hex')

/** `verify_tokens`: includes the token of the previous SECRET_KEY. */
type NumberHook = { app_secret: Buffer; verify_tokens: readonly string[]; scope: HookScope }

/** Returns the hook of a number. Null if the number or its app secret doesn't exist. */
export async function hookOfNumber(tx: Tx, secrets: Secrets, name: string): Promise<NumberHook | null> {
  const number = await numberCredentials(tx, name)
  if (!number?.app_secret) return null
  return {
    app_secret: openCredential(secrets, name, 'app_secret', number.app_secret),
    verify_tokens: secrets.signatures('whatsapp', verifyData(name), 16).map((each) => each.toString('hex')),
    scope: number,
  }
}
