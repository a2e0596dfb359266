/** Verbs of `secret`: what SECRET_KEY protects. */
import { resealAll } from '../domains/rekey.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (secret, admin) => {
  secret
    .command('reseal')
    .description('seal stored private keys with SECRET_KEY, so that none needs SECRET_KEY_PREVIOUS any more')
    .addHelpText(
      'after',
      '\nLinks and return addresses under way were signed with the old key: keep it for them.',
    )
    .action(
      answer(async () => {
        const secrets = await admin.secrets()
        const domains = await admin.change(
          ({ tx }) => resealAll({ tx, secrets }),
          (count) => ({ team_id: null, action: 'secret.reseal', subject: `${count} domains` }),
        )
        return { domains }
      }),
    )
}
