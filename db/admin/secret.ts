/** Verbs of `secret`: what SECRET_KEY protects. */
import { reseal } from '../upkeep/reseal.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (secret, admin) => {
  secret
    .command('reseal')
    .description(
      'seal stored private keys and secrets with SECRET_KEY, so that none needs SECRET_KEY_PREVIOUS any more',
    )
    .addHelpText(
      'after',
      '\nLinks and return addresses under way were signed with the old key: keep it for them.',
    )
    .action(
      answer(async () => {
        const secrets = await admin.secrets()
        const { domains, webhooks } = await admin.transaction((by) => reseal({ ...by, secrets }))
        return webhooks > 0 ? { domains, webhooks } : { domains }
      }),
    )
}
