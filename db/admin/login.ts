/** `login`: a one-time link to the dashboard, for anybody with access to the database. Always open. */
import { linkFor } from '../accounts/members/members.ts'
import { ROLES, type Role } from '../accounts/members/roles.ts'
import { oneOf, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'

type Options = { team?: string; role?: Role; operator: boolean }

export const verbs: Verbs = ({ noun, withArguments, change, admin }) => {
  withArguments(noun, ['EMAIL'], { EMAIL: ['who signs in'] })
    .option('--team <team>', 'make them a member of this team; the link opens it alone', uuidArgument)
    .option('--role <role>', `their role in it: ${ROLES.join(', ')}`, oneOf(ROLES))
    .option('--operator', 'make them an operator of the whole service; the link opens all of it', false)
    .addHelpText(
      'after',
      '\nThe link is good once, for 15 minutes. It begins with PUBLIC_URL when that is set, else with http://localhost and\n' +
        'PORT, or the port of `npm start`.',
    )
    .action(
      change(async (by, email: string, { team, role, operator }: Options) => {
        const wish = { email, team: team ?? null, role: role ?? null, operator }
        const { secret, expires_at } = await linkFor(by, wish)
        return { url: new URL(`/dashboard/login/${secret}`, admin.site()).href, expires_at }
      }),
    )
}
