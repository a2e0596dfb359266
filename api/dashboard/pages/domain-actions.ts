/** The actions on the page of a sending domain. Pure. */
import type { DomainRow } from '../../../db/accounts/domains/domains.sql.ts'
import { ownReturnPath } from '../../../db/accounts/domains/return-path.ts'
import type { Actions, Form } from '../components/section.ts'
import { button, compact, hidden } from '../server/builders.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { type DnsLine, isLacking } from './domain-records.ts'

/** The parameter for new lookups. */
export const AGAIN = 'again'

export const newestSelector = ({ next_dkim_selector, dkim_selector }: DomainRow): string =>
  next_dkim_selector ?? dkim_selector

type Shown = {
  domain: DomainRow
  records: readonly DnsLine[]
  /** RETURN_PATH_DOMAIN, or null if it isn't set. */
  returnDomain: string | null
  /** True while the number of emails per day is limited. */
  ramps: boolean
}

/** True if verifying changes the status, the signing key, or the alert about a missing record. */
const needsVerification = ({ status, next_dkim_selector, missing_since }: DomainRow): boolean =>
  status !== 'verified' || next_dkim_selector !== null || missing_since !== null

/** True if the signing key is published, and no new one is pending. */
const canRotate = ({ status, next_dkim_selector, dkim_selector }: DomainRow, records: readonly DnsLine[]) =>
  status === 'verified' &&
  next_dkim_selector === null &&
  records.some(({ name, state }) => state === 'found' && name.startsWith(`${dkim_selector}.`))

const checkAgain = (path: string, isNext: boolean): Form => ({
  ...{ action: path, method: 'get', fields: [hidden(AGAIN, 'yes')], submit: 'Check again' },
  tone: isNext ? undefined : 'quiet',
})

const returnPathButton = (path: string, { name, return_path: isOn }: DomainRow, returnDomain: string): Form =>
  button(path, `Turn ${isOn ? 'off' : 'on'} the domain’s own return path`, {
    fields: [hidden('on', isOn ? '' : 'on')],
    about: isOn
      ? `Bounces go to ${returnDomain} instead of ${ownReturnPath(name)}.`
      : `Bounces go to ${ownReturnPath(name)}, so that SPF aligns.`,
    menu: true,
  })

const ed25519Button = (path: string, { ed25519_selector: selector }: DomainRow): Form =>
  button(path, selector === null ? 'Turn on Ed25519' : 'Turn off Ed25519', {
    fields: [hidden('on', selector === null ? 'on' : '')],
    about: 'A second signature with a shorter key. Receivers that don’t support it check the first one.',
    menu: true,
  })

function changes({ team }: TeamRequest, { domain, records, returnDomain, ramps }: Shown): Form[] {
  const at = (verb: string): string => teamPath(team, 'domains', domain.name, verb)
  return compact([
    ramps &&
      button(at('ramp'), 'Turn off the ramp-up', {
        fields: [hidden('limit', 'off')],
        about: 'Broadcasts from this domain then have no daily limit.',
        menu: true,
      }),
    canRotate(domain, records) &&
      button(at('rekey'), 'Rotate the DKIM key', {
        fields: [hidden('seen', newestSelector(domain), true)],
        about: 'The old key signs until the record of the new one is verified.',
        menu: true,
      }),
    returnDomain !== null && returnPathButton(at('return-path'), domain, returnDomain),
    ed25519Button(at('ed25519'), domain),
    button(at('delete'), 'Remove domain', { tone: 'danger' }),
  ])
}

/** Verifying or checking the records comes first. A test team needs no records. */
export function domainActions(request: TeamRequest, shown: Shown): Actions {
  const { team } = request
  const { domain, records } = shown
  const isOwner = team.role === 'owner'
  const verifies = isOwner && needsVerification(domain)
  const verify = button(teamPath(team, 'domains', domain.name, 'verify'), 'Verify now')
  const check = checkAgain(teamPath(team, 'domains', domain.name), isOwner && records.some(isLacking))
  return { forms: compact([!team.test && (verifies ? verify : check), isOwner && changes(request, shown)]) }
}
