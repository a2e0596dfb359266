/** Verbs of `secret`: what SECRET_KEY protects. */
import { reseal } from '../maintenance/reseal.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, change }) => {
  verb(
    'reseal',
    'Encrypt stored private keys and secrets again, with SECRET_KEY instead of SECRET_KEY_PREVIOUS',
  )
    .addHelpText(
      'after',
      `
Keep SECRET_KEY_PREVIOUS set afterwards. Links and return addresses in messages already sent need it.`,
    )
    .action(
      change(async (by) => {
        const { domains, webhooks, numbers } = await reseal(by)
        return { domains, ...(webhooks > 0 ? { webhooks } : {}), ...(numbers > 0 ? { numbers } : {}) }
      }, 'secrets'),
    )
}
