/**
 * The first five steps of a new team, with links. They are shown until all are done. The invitation counts as
 * done a week after the first email, because some users don't have colleagues. Viewers don't see them.
 */
import { keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { membersOfTeam } from '../../../db/accounts/members/people.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { dayBefore } from '../../../db/stats/daily/fold.ts'
import { firstDay } from '../../../db/stats/daily/stats.sql.ts'
import type { ChecklistItem, Link, Section } from '../components/section.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { keyState } from './keys.ts'

/** Number of days after the first email until the invitation counts as done. */
const INVITE_ASKED_DAYS = 7

/** Returns the steps that the API needs: a verified domain and a key. */
export async function setUpSteps(
  { team, now }: TeamRequest,
  { database }: PageDeps,
): Promise<ChecklistItem[]> {
  const domains = await domainsOfTeam(database, team.id)
  const keys = await keysOfTeam(database, team.id)
  const verified = domains.find(({ status }) => status === 'verified')
  const domain = verified ?? domains[0]
  return [
    {
      title: 'Add the domain that you send from',
      text: domain?.name ?? 'Such as mail.example.com.',
      link: { href: teamPath(team, 'domains'), label: 'Add a domain' },
      done: domains.length > 0,
    },
    {
      title: 'Publish its DNS records and verify it',
      text: 'Emails can only be sent from verified domains.',
      link: {
        href: domain ? teamPath(team, 'domains', domain.name) : teamPath(team, 'domains'),
        label: 'Show its DNS records',
      },
      done: verified !== undefined,
    },
    {
      title: 'Create an API key',
      text: 'It is shown once.',
      link: { href: teamPath(team, 'keys'), label: 'Create an API key' },
      done: keys.some((key) => keyState(key, now) === 'active'),
    },
  ]
}

const OWNERS = 'Owners of the team add its domain, keys and members.'

export function nextStep({ team }: TeamRequest, [section]: readonly Section[]): Link | undefined {
  if (team.role !== 'owner' || section?.kind !== 'steps') return undefined
  const next = section.steps.find(({ done }) => !done)
  return next?.link?.label ? next.link : undefined
}

/** Builds the list of steps. It is empty if all are done, and for viewers. */
export async function firstSteps(request: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const { team, now } = request
  const { database } = deps
  if (team.role === 'viewer') return []
  const members = await membersOfTeam(database, team.id)
  const since = await firstDay(database, team.id, EMAIL)
  const isAlone = since !== null && since < dayBefore(now, INVITE_ASKED_DAYS).toISOString().slice(0, 10)
  const link = (path: string) => ({ href: teamPath(team, path), label: '' })
  const steps: ChecklistItem[] = [
    ...(await setUpSteps(request, deps)),
    {
      title: 'Send a test email',
      text: 'With one click, or with an example request for your domain.',
      link: link('integration'),
      done: since !== null,
    },
    {
      title: 'Invite a colleague',
      text: 'As a viewer, an editor or an owner. If you work alone, this step disappears a week after your first email.',
      link: link('people'),
      done: members.length > 1 || isAlone,
    },
  ]
  if (steps.every(({ done }) => done)) return []
  const note = team.role === 'owner' ? undefined : OWNERS
  return [{ kind: 'steps', title: 'First steps', note, steps }]
}
