/** A team's settings: its name, and which suppressions stop its transactional email. Also shows its plan. */

import type { By } from '../../../db/accounts/audit/record.ts'
import { membersOfTeam } from '../../../db/accounts/members/people.sql.ts'
import { planName } from '../../../db/accounts/plans/plans.sql.ts'
import { USED } from '../../../db/accounts/plans/quotas.ts'
import { chooseSuppressTransactional, renameTeam } from '../../../db/accounts/teams/settings.ts'
import {
  SUPPRESS_TRANSACTIONAL,
  type SuppressTransactional,
} from '../../../db/accounts/teams/suppress-transactional.ts'
import { readSuppressTransactional } from '../../../db/accounts/teams/teams.sql.ts'
import { showTeam } from '../../../db/accounts/teams/view.ts'
import { countSuppressed } from '../../../db/audience/suppressions/addresses.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { plural } from '../../../db/plural.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { byteWords, dayWords, headed, number, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { usageTile } from '../components/usage.ts'
import { action, buildFacts, buildForm, buildOptions, field, get, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { wordParam } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'

const CHOICES: Record<SuppressTransactional, string> = {
  bounces: 'Hard bounces: the mailbox doesn’t exist',
  bounces_and_complaints: 'Hard bounces, complaints, and addresses added manually for another reason',
  nothing: 'Nothing: transactional email is sent to every address',
}

const MAX_COUNTED = 10_000

/** Describes the effect of the choice “Hard bounces”, unless it is chosen. */
async function describeBounced(tx: Tx, teamId: string, chosen: SuppressTransactional): Promise<string> {
  if (chosen !== 'nothing') return ''
  const bounced = await countSuppressed(tx, teamId, { bounced: true }, MAX_COUNTED + 1)
  const many = plural(Math.min(bounced, MAX_COUNTED), 'address', 'addresses')
  return `With “Hard bounces”, ${bounced > MAX_COUNTED ? 'more than ' : ''}${many} would get no transactional email.`
}

/** The values on the form. A stale form must not undo a change of another owner. */
const SEEN = { name: 'seen_name', which: 'seen_suppress_transactional' } as const

async function settingsForm({ team }: TeamRequest, chosen: SuppressTransactional, tx: Tx): Promise<Section> {
  const note = [
    'Broadcasts never go to a suppressed address. Choose which suppressions also stop transactional email.',
    await describeBounced(tx, team.id, chosen),
  ]
  const fields = [
    field('name', 'Team name', { value: team.name, required: true }),
    hidden(SEEN.name, team.name, true),
    field('suppress_transactional', 'Stop transactional email for', {
      type: 'radios',
      hint: note.join(' ').trim(),
      options: buildOptions(SUPPRESS_TRANSACTIONAL, [chosen], (value) => CHOICES[value]),
    }),
    hidden(SEEN.which, chosen, true),
  ]
  return buildForm(teamPath(team, 'settings'), 'Save the settings', { title: 'Team', fields })
}

async function noticesSection({ team, person }: TeamRequest, { database, from }: PageDeps): Promise<Section> {
  const owners = (await membersOfTeam(database, team.id)).filter(({ role }) => role === 'owner')
  return buildFacts(
    {
      'Sent to':
        from === null
          ? status('no one', {
              tone: 'warn',
              detail: `Notices are off. ${person.operator ? 'Set DASHBOARD_FROM' : 'Ask your operator'} to turn them on.`,
            })
          : text(owners.map(({ email }) => email).join(', ') || 'no one, because this team has no owner'),
      About: text(
        'Automatically disabled webhooks, automatically paused broadcasts, missing DKIM records, high bounce and complaint rates, and template categories changed by Meta',
      ),
    },
    { title: 'Notices by email' },
  )
}

async function planSections({ team, now }: TeamRequest, tx: Tx): Promise<Section[]> {
  const { plan, limits, used, period } = await showTeam(tx, team.id)
  return [
    {
      kind: 'tiles',
      title: `Plan ${await planName(tx, plan)}`,
      note: `Resets ${dayWords(period.end)}. The operator of this service changes plans and limits.`,
      tiles: [
        ...USED.map(({ name, noun }) => usageTile(headed(noun), used[name], limits[name])),
        usageTile('Attachments', used.storage, limits.storage, { words: byteWords }),
      ],
    },
    buildFacts({
      'Emails per second, at most': number(limits.rate),
      'Team ID': text(team.id, { code: true, copy: true }),
      Kind: team.test && text('test team', { detail: 'Nothing is delivered.' }),
      Created: time(team.created_at, now),
    }),
  ]
}

const page = get('viewer', '/teams/:team/settings', async (request, deps) => {
  const { team } = request
  const { database } = deps
  const chosen = await readSuppressTransactional(database, team.id)
  const isOwner = team.role === 'owner'
  return show({
    title: 'Settings',
    lead: isOwner ? undefined : 'An owner of the team can change these.',
    sections: [
      isOwner
        ? await settingsForm(request, chosen, database)
        : buildFacts({ Team: text(team.name), 'Stops transactional email': text(CHOICES[chosen]) }),
      await noticesSection(request, deps),
    ],
    aside: await planSections(request, database),
  })
})

async function saveName(by: By, { team, form }: TeamRequest): Promise<void> {
  const name = form.get('name')?.trim()
  if (name !== undefined && name !== form.get(SEEN.name)) await renameTeam(by, team.id, name)
}

const save = action('owner', '/teams/:team/settings', async (by, request) => {
  const { team, form } = request
  const which = wordParam(form, 'suppress_transactional', SUPPRESS_TRANSACTIONAL)
  if (which === undefined)
    throw invalidField('suppress_transactional', `must be one of ${SUPPRESS_TRANSACTIONAL.join(', ')}`)
  await saveName(by, request)
  if (which !== form.get(SEEN.which)) await chooseSuppressTransactional(by, team.id, which)
  return redirect(teamPath(team, 'settings'), 'The settings were saved.')
})

export const settingsPages = [page, save]
