/** Verbs of `secret`: what SECRET_KEY protects. */
import { reseal } from '../maintenance/reseal.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, change }) => {
  verb(
    'reseal',
    'Encrypt stored private keys and secrets with SECRET_KEY, so that they don’t need SECRET_KEY_PREVIOUS any longer',
  )
    .addHelpText(
      'after',
      `
Links and return addresses in messages already sent were signed with the old key. Keep it for them.`,
    )
    .action(
      change(async (by) => {
        const { domains, webhooks, numbers } = await reseal(by)
        return { domains, ...(webhooks > 0 ? { webhooks } : {}), ...(numbers > 0 ? { numbers } : {}) }
      }, 'secrets'),
    )
}
