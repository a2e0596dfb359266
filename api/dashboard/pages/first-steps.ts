/** What a new team does first: five steps, each with the page that it is done on. */
import { keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { membersOfTeam } from '../../../db/accounts/people/people.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { hasFigures } from '../../../db/figures/daily/figures.sql.ts'
import type { Section, Step } from '../drawn/section.ts'
import type { PageDeps } from '../served/deps.ts'
import { type TeamRequest, teamPath } from '../served/page.ts'

/** The steps, ticked as far as they are done; nothing once all are. */
export async function firstSteps({ team }: TeamRequest, { database }: PageDeps): Promise<Section[]> {
  const domains = await domainsOfTeam(database, team.id)
  const keys = await keysOfTeam(database, team.id)
  const members = await membersOfTeam(database, team.id)
  const hasSent = await hasFigures(database, team.id, EMAIL)
  const [domain] = domains
  const link = (...path: string[]) => ({ href: teamPath(team, ...path), label: '' })
  const steps: Step[] = [
    {
      title: 'Add the domain that you send from',
      text: domain?.name ?? 'Such as mail.example.com.',
      link: link('domains'),
      done: domains.length > 0,
    },
    {
      title: 'Publish its DNS records and verify it',
      text: 'Emails are sent from verified domains alone.',
      link: domain ? link('domains', domain.name) : link('domains'),
      done: domains.some(({ status }) => status === 'verified'),
    },
    {
      title: 'Make an API key',
      text: 'It is shown once.',
      link: link('keys'),
      done: keys.length > 0,
    },
    {
      title: 'Send the first email',
      text: 'With a request to paste that has your own domain in it.',
      link: link('integration'),
      done: hasSent,
    },
    {
      title: 'Invite a colleague',
      text: 'As a viewer, an editor or an owner.',
      link: link('people'),
      done: members.length > 1,
    },
  ]
  return steps.every(({ done }) => done) ? [] : [{ kind: 'steps', title: 'First steps', steps }]
}
