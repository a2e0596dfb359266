/** A team's settings: which suppressions stop its transactional email. */

import { chooseSuppressTransactional } from '../../../db/accounts/teams/suppress.ts'
import {
  SUPPRESS_TRANSACTIONAL,
  type SuppressTransactional,
} from '../../../db/accounts/teams/suppress-transactional.ts'
import { readSuppressTransactional } from '../../../db/accounts/teams/teams.sql.ts'
import { countSuppressed } from '../../../db/audience/suppressions/addresses.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { plural, text, time } from '../components/cell.ts'
import { action, buildFacts, buildForm, compact, field, get } from '../server/builders.ts'
import { wordParam } from '../server/list.ts'
import { redirect, show, teamPath } from '../server/page.ts'

const CHOICES: Record<SuppressTransactional, string> = {
  bounces: 'Hard bounces: the mailbox doesn’t exist',
  bounces_and_complaints: 'Hard bounces, complaints, and addresses that were added manually',
  nothing: 'Nothing: transactional email is sent to every address',
}

/** Maximum count of addresses. */
const MAX_COUNTED = 10_000

/** Explains the setting on its form. For other roles it is a fact. */
const NOTE =
  'Broadcasts never go to a suppressed address. Choose which suppressions also stop transactional email.'

const page = get('viewer', '/teams/:team/settings', async ({ team, now }, { database }) => {
  const chosen = await readSuppressTransactional(database, team.id)
  const bounced = await countSuppressed(database, team.id, { bounced: true }, MAX_COUNTED + 1)
  const many =
    bounced > MAX_COUNTED
      ? `More than ${plural(MAX_COUNTED, 'address', 'addresses')}`
      : plural(bounced, 'address', 'addresses')
  return show({
    title: 'Settings',
    lead: team.role === 'owner' ? undefined : 'An owner of the team can change these.',
    sections: compact([
      buildFacts({
        Team: text(team.name, { detail: team.test ? 'test team' : undefined }),
        'Team ID': text(team.id, { code: true, copy: true }),
        Created: time(team.created_at, now),
        'Stops transactional email': team.role !== 'owner' && text(CHOICES[chosen]),
        'Would get no transactional email with “Hard bounces”': chosen === 'nothing' && text(many),
      }),
      team.role === 'owner' &&
        buildForm(
          teamPath(team, 'settings'),
          'Save the settings',
          [
            field('suppress_transactional', 'Stop transactional email for', {
              type: 'radios',
              options: SUPPRESS_TRANSACTIONAL.map((value) => ({
                value,
                label: CHOICES[value],
                selected: value === chosen,
              })),
            }),
          ],
          { title: 'Suppression', note: NOTE },
        ),
    ]),
  })
})

const save = action('owner', '/teams/:team/settings', async (by, { team, form }) => {
  const which = wordParam(form, 'suppress_transactional', SUPPRESS_TRANSACTIONAL)
  if (which === undefined)
    throw invalidField('suppress_transactional', `must be one of ${SUPPRESS_TRANSACTIONAL.join(', ')}`)
  await chooseSuppressTransactional(by, team.id, which)
  return redirect(teamPath(team, 'settings'), 'The settings were saved.')
})

export const settingsPages = [page, save]
