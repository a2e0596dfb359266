/** Verbs of `secret`: what SECRET_KEY protects. */
import { reseal } from '../maintenance/reseal.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, change }) => {
  verb(
    'reseal',
    'seal stored private keys and secrets with SECRET_KEY, so that none needs SECRET_KEY_PREVIOUS any more',
  )
    .addHelpText(
      'after',
      '\nLinks and return addresses under way were signed with the old key: keep it for them.',
    )
    .action(
      change(async (by) => {
        const { domains, webhooks, numbers } = await reseal(by)
        return { domains, ...(webhooks > 0 ? { webhooks } : {}), ...(numbers > 0 ? { numbers } : {}) }
      }, 'secrets'),
    )
}
