/** `login`: creates a one-time link to the dashboard, for anyone with access to the database. */
import { linkFor } from '../accounts/members/members.ts'
import { ROLES, type Role } from '../accounts/members/roles.ts'
import { oneOf, uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'

type Options = { team?: string; role?: Role; operator: boolean }

export const verbs: Verbs = ({ noun, withArguments, change, admin }) => {
  withArguments(noun, ['EMAIL'], { EMAIL: ['the user who signs in'] })
    .option(
      '--team <team>',
      'make the user a member of this team. The link only gives access to this team',
      uuidArgument,
    )
    .option('--role <role>', `the user’s role in the team: ${ROLES.join(', ')}`, oneOf(ROLES))
    .option(
      '--operator',
      'make the user an operator of the service. The link gives access to all teams',
      false,
    )
    .addHelpText(
      'after',
      `
The link works once, within 15 minutes. Its address is PUBLIC_URL if that is set, otherwise http://localhost with
` + 'PORT or the port of `npm start`.',
    )
    .action(
      change(async (by, email: string, { team, role, operator }: Options) => {
        const wish = { email, team: team ?? null, role: role ?? null, operator }
        const { secret, expires_at } = await linkFor(by, wish)
        return { url: new URL(`/dashboard/login/${secret}`, admin.site()).href, expires_at }
      }),
    )
}
