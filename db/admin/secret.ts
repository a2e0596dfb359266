/** Verbs of `secret`: what SECRET_KEY protects. */
import { resealAll } from '../accounts/domains/rekey.ts'
import { resealSecrets } from '../messages/webhooks/reseal.ts'
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
        return admin.change(
          async ({ tx }) => {
            const webhooks = await resealSecrets({ tx, secrets })
            const domains = await resealAll({ tx, secrets })
            return webhooks > 0 ? { domains, webhooks } : { domains }
          },
          ({ domains, webhooks = 0 }: { domains: number; webhooks?: number }) => ({
            team_id: null,
            action: 'secret.reseal',
            subject: `${domains} domains, ${webhooks} webhooks`,
          }),
        )
      }),
    )
}
