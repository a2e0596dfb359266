/** Sending domains with their required and published DNS records and their verification. */

import { addDomain, domainView, removeDomain, requireDomain } from '../../../db/accounts/domains/add.ts'
import { type DomainRow, domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { setEd25519, setReturnPath } from '../../../db/accounts/domains/options.ts'
import { rekeyDomain } from '../../../db/accounts/domains/rekey.ts'
import { ownReturnPath } from '../../../db/accounts/domains/return-path.ts'
import { checkDomain, lookUpKeys, verifyDomain } from '../../../db/accounts/domains/verify.ts'
import { invalidField, RequestError } from '../../../db/errors.ts'
import { changeRamp, shownRamp } from '../../../db/messages/broadcasts/ramp.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import { assertUnreplaced } from '../server/already.ts'
import { action, buildFacts, buildForm, compact, field, get, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { forOthers, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortableTable } from '../server/sort.ts'
import { RAMP_RULE, rampWords } from './broadcast-ramp.ts'
import { AGAIN, domainActions, newestSelector } from './domain-actions.ts'
import { type DnsLine, domainState, isLacking, recordSection, writeLead } from './domain-records.ts'

/** Maximum number of domains in the list whose keys are looked up. */
const MAX_LOOKUPS = 50
/** How long the list waits for DNS, so that it stays within the 200 ms of a list. */
const LOOKUP_WAIT_MS = 150

/** Adds if a domain with a wrong or missing key can send. */
function stateWithUse(domain: DomainRow, key: DnsLine['state']): Cell {
  const state = domainState(domain, key)
  const use = domain.status === 'verified' ? 'can still send' : 'can’t send'
  return state.tone === 'bad' ? { ...state, detail: use } : state
}

const list = get('viewer', '/teams/:team/domains', async (request, { database, recent }) => {
  const { team, now } = request
  const domains = await domainsOfTeam(database, team.id)
  const keys = await lookUpKeys(
    team.test ? [] : domains.slice(0, MAX_LOOKUPS),
    recent.lookupTxt,
    LOOKUP_WAIT_MS,
  )
  return show({
    title: 'Domains',
    lead: `Emails can be sent only from verified domains.${forOthers(team, 'add them')}`,
    sections: compact([
      sortableTable(
        request,
        domains,
        (domain) => ({
          Name: text(domain.name, { href: teamPath(team, 'domains', domain.name) }),
          Status: stateWithUse(domain, keys.get(domain.id)),
          Verified: { ...time(domain.verified_at, now, '–'), usual: true },
          Added: time(domain.created_at, now),
        }),
        { empty: team.role === 'owner' ? 'No domains yet. Add your sending domain.' : 'No domains yet.' },
      ),
      team.role === 'owner' &&
        buildForm(teamPath(team, 'domains'), 'Add domain', {
          title: 'Add a domain',
          folded: true,
          fields: [
            field('name', 'Domain', {
              required: true,
              placeholder: 'mail.example.com',
              hint: 'The part after the @ of your From address. Add each subdomain as a separate domain.',
            }),
          ],
        }),
    ]),
  })
})

/** Checks the records in DNS. Without a response from DNS, returns only the records to publish. */
async function checkRecords(
  { team, query }: TeamRequest,
  { database, returnDomain, recent }: PageDeps,
  name: string,
): Promise<readonly DnsLine[]> {
  const looks = query.has(AGAIN) ? recent.fresh : recent
  try {
    return (await checkDomain({ ...looks, database, returnDomain }, team.id, name)).records
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'unavailable') throw error
    return domainView(await requireDomain(database, team.id, name), returnDomain).dns_records
  }
}

function returnPathFacts(
  { name, return_path, return_path_rejected_at, return_path_response }: DomainRow,
  { now, returnDomain, isPublished }: { now: Date; returnDomain: string | null; isPublished: boolean },
) {
  if (returnDomain === null)
    return {
      Bounces: status('not counted', {
        tone: 'warn',
        detail: `They return to ${name}’s own mail server, so bounced addresses aren’t suppressed. Ask your operator to set up a return path.`,
      }),
    }
  const isUsed = return_path && return_path_rejected_at === null
  return {
    'Bounces return to': text(isUsed ? ownReturnPath(name) : returnDomain, { code: true }),
    'SPF aligns': isUsed
      ? status('yes', { tone: 'good' })
      : text(`no, unless ${returnDomain} belongs to the same organization`, {
          detail: return_path
            ? 'The relay rejects the domain’s own return path. Ask your operator to allow it.'
            : isPublished
              ? 'Turn on the domain’s own return path to align it.'
              : 'The return path record is missing. Publish it, then turn on the domain’s own return path.',
        }),
    'Own return path rejected by the relay': return_path &&
      return_path_rejected_at !== null && {
        ...time(return_path_rejected_at, now),
        detail: return_path_response ?? undefined,
      },
  }
}

const page = get('viewer', '/teams/:team/domains/:name', async (request, deps) => {
  const { team, params, now } = request
  const domain = await requireDomain(deps.database, team.id, params.name)
  const ramp = await shownRamp(deps.database, domain.name)
  const [records, zone] = await Promise.all([
    checkRecords(request, deps, domain.name),
    deps.recent.zoneOf(domain.name),
  ])
  const { returnDomain, recent } = deps
  const checkedAt = recent.lookedUpAt(records)
  return show({
    title: domain.name,
    state: domainState(domain, team.test ? undefined : records[0]?.state),
    back: { href: teamPath(team, 'domains'), label: 'Domains' },
    lead: writeLead(domain, records, team),
    actions: domainActions(request, { domain, records, returnDomain, ramps: ramp !== null }),
    sections: compact([
      recordSection(records, zone, domain),
      buildFacts({
        Verified: time(domain.verified_at, now, 'not yet'),
        'DKIM missing or different since': domain.missing_since && time(domain.missing_since, now),
        'Last checked': checkedAt !== null && time(checkedAt.toISOString(), now),
        'Ramp-up': ramp && text(rampWords(ramp), { detail: RAMP_RULE }),
        ...returnPathFacts(domain, {
          now,
          returnDomain,
          isPublished: records.some(({ type, state }) => type === 'CNAME' && state === 'found'),
        }),
      }),
    ]),
  })
})

const add = action('owner', '/teams/:team/domains', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  const row = await addDomain(by, team.id, { name, verified: false })
  return redirect(
    teamPath(team, 'domains', row.name),
    `${row.name} was added. Publish these records, then verify it.`,
  )
})

/** The use case queries DNS before it opens its transaction. */
const verify = post('owner', '/teams/:team/domains/:name/verify', async ({ team, params, person }, deps) => {
  const name = params.name
  const by = { now: await serviceTime(deps.database), actor: person.email }
  const { status: word, records } = await verifyDomain(
    { ...deps, ...deps.recent.fresh, ...by },
    team.id,
    name,
  )
  const back = teamPath(team, 'domains', name)
  const [first] = records.filter(isLacking)
  if (!first) return redirect(back, `${name} is verified. You can send from this domain.`)
  const words = `${first.name} ${first.state === 'different' ? 'has another value in' : 'is missing from'} DNS. Changes can take up to an hour.`
  return redirect(back, { tone: word === 'verified' ? 'good' : 'bad', text: words })
})

const rekey = action('owner', '/teams/:team/domains/:name/rekey', async (by, { team, params, form }) => {
  const { name } = params
  await rekeyDomain(by, team.id, name, { seen: form.get('seen') })
  const words = 'A new key was created. Publish its record, then verify. Until then the old key signs.'
  return redirect(teamPath(team, 'domains', name), words)
}).confirm(async ({ team, params, form }, { database }) => {
  const domain = await requireDomain(database, team.id, params.name)
  assertUnreplaced(`The DKIM key of ${domain.name}`, form.get('seen'), newestSelector(domain))
  return {
    question: `Rotate the DKIM key of ${domain.name}?`,
    answer: 'Rotate the DKIM key',
    warning: 'Publish the new key’s record, then verify. Until then the old key signs.',
  }
})

/** The use case queries DNS before it opens its transaction. */
const returnPath = post('owner', '/teams/:team/domains/:name/return-path', async (request, deps) => {
  const { team, params, form, person } = request
  const by = { now: await serviceTime(deps.database), actor: person.email }
  const on = form.get('on') === 'on'
  const { name } = await setReturnPath({ ...deps, ...by }, team.id, { name: params.name, on })
  const words = on
    ? `Bounces return to ${ownReturnPath(name)} from now on.`
    : 'Bounces return to the operator’s domain from now on.'
  return redirect(teamPath(team, 'domains', name), words)
})

const ed25519 = action('owner', '/teams/:team/domains/:name/ed25519', async (by, { team, params, form }) => {
  const on = form.get('on') === 'on'
  const { name } = await setEd25519(by, team.id, { name: params.name, on })
  const words = on
    ? 'From now on, emails are also signed with a second key. Publish its DNS record.'
    : 'From now on, emails are signed with one key. You can delete the DNS record of the second key.'
  return redirect(teamPath(team, 'domains', name), words)
})

const remove = action(
  'owner',
  '/teams/:team/domains/:name/delete',
  async (by, { team, params: { name } }) => {
    await removeDomain(by, team.id, name)
    return redirect(teamPath(team, 'domains'), `${name} was removed.`)
  },
).confirm(async ({ team, params }, { database }) => ({
  question: `Remove ${(await requireDomain(database, team.id, params.name)).name}?`,
  answer: 'Remove domain',
  warning: 'You can’t send from it afterwards. Emails already sent are kept.',
  tone: 'danger',
}))

const rampUp = action(
  'owner',
  '/teams/:team/domains/:name/ramp',
  async (by, { team, params: { name }, form }) => {
    const given = form.get('limit') ?? ''
    if (given !== 'off' && !/^[1-9]\d{0,5}$/.test(given))
      throw invalidField('limit', 'must be a number, or off')
    await changeRamp(by, team.id, name, given === 'off' ? null : Number(given))
    const words =
      given === 'off'
        ? 'The ramp-up is off.'
        : `Broadcasts from ${name} are limited to ${given} emails today.`
    return redirect(teamPath(team, 'domains', name), words)
  },
)

export const domainsPages = [list, page, add, verify, rekey, returnPath, ed25519, remove, rampUp]
