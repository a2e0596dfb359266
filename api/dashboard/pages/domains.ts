/** Sending domains: the DNS records to publish, what DNS has in their place, and whether mail may be sent from them. */

import { addDomain, domainView, removeDomain, requireDomain } from '../../../db/accounts/domains/add.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../../../db/accounts/domains/rekey.ts'
import { checkDomain, type RecordCheck, verifyDomain } from '../../../db/accounts/domains/verify.ts'
import { RequestError } from '../../../db/errors.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import { headed, status, text, time } from '../components/cell.ts'
import { differenceWords, hostIn } from '../components/dns.ts'
import type { Section } from '../components/section.ts'
import {
  act,
  compact,
  factsOf,
  field,
  formOf,
  get,
  hidden,
  post,
  press,
  tableOf,
} from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'

/** How many records of one name are shown. */
const MAX_PUBLISHED_SHOWN = 10

const RETURN_PATH =
  'Where mail leaves through an SMTP server, the return-path record brings its bounces back to the service: it is an MX record of the one domain that the operator sets for all mail (RETURN_PATH_DOMAIN), and without that setting bounces go to this domain’s own mail server and are not counted.'

const list = get('viewer', '/teams/:team/domains', async ({ team, now }, { database }) => {
  const domains = await domainsOfTeam(database, team.id)
  return show({
    title: 'Domains',
    lead: 'Emails can be sent only from verified domains.',
    sections: compact([
      tableOf(
        domains,
        ({ name, status: word, verified_at, created_at }) => ({
          Status: status(word),
          Name: text(name, { href: teamPath(team, 'domains', name) }),
          Verified: time(verified_at, now, 'not yet'),
          Added: time(created_at, now),
        }),
        {
          empty:
            team.role === 'owner'
              ? 'No domains yet. Add the one that you send from.'
              : 'No domains yet. An owner of the team can add one.',
        },
      ),
      team.role === 'owner' &&
        formOf(
          teamPath(team, 'domains'),
          'Add domain',
          [
            field('name', 'Domain', {
              required: true,
              placeholder: 'mail.example.com',
              hint: 'The part after the @ of your From address. A subdomain is added as a domain of its own.',
            }),
          ],
          { title: 'Add a domain', folded: true },
        ),
    ]),
  })
})

function purposeOf({ name }: { name: string }): string {
  if (name.includes('._domainkey.')) return 'DKIM: proves that mail is yours'
  return name.startsWith('_dmarc.') ? 'DMARC: what to do with other mail' : 'SPF: who may send for it'
}

/** A record as it is needed, with what DNS has in its place. */
type Line = Pick<RecordCheck, 'type' | 'name' | 'value'> & Partial<RecordCheck>

const joined = (published: readonly string[]): string => published.slice(0, MAX_PUBLISHED_SHOWN).join(' · ')

/** All records in one table: what each is for, and what to publish; of one that is found, what is published. */
const recordTable = (records: readonly Line[], zone: string | null): Section =>
  tableOf(
    records,
    ({ type, name, value, state, required = true, published = [] }) => ({
      State:
        state === undefined
          ? text('not known')
          : status(state, required || state === 'found' ? {} : { tone: 'warn' }),
      Purpose: text(purposeOf({ name }), {
        detail:
          state === 'different'
            ? headed(differenceWords({ name, value }, published))
            : required
              ? 'Needed'
              : 'Recommended',
      }),
      Type: text(type, { code: true }),
      Host: text(hostIn(zone, name), { code: true, copy: true, tip: name }),
      Value:
        state === 'found'
          ? text(joined(published), { code: true, tip: joined(published) })
          : text(value, { code: true, copy: true, tip: value }),
    }),
    {
      title: 'DNS records',
      note:
        zone === null
          ? undefined
          : `Hosts are the part before ${zone}, as most DNS panels ask for it; @ is ${zone} itself.`,
      wrap: ['Purpose'],
      empty: '',
    },
  )

/** What DNS has in the place of records that differ. */
const otherTable = (others: readonly Line[]): Section =>
  tableOf(
    others,
    ({ name, published = [] }) => ({
      Host: text(name, { code: true }),
      Value: text(joined(published), { code: true }),
    }),
    { title: 'What DNS has instead', wrap: ['Value'], empty: '' },
  )

function leadOf(verified: boolean, records: readonly Line[]): string {
  const lacking = records.filter(({ required, state }) => required && state !== 'found')
  if (lacking.some(({ state }) => state === undefined)) return 'DNS is not answering at the moment.'
  const [first] = lacking
  if (first === undefined)
    return verified
      ? 'Ready: you can send from it.'
      : 'The records that are needed are published: verify the domain now.'
  const what = first.state === 'different' ? 'is different from what is needed' : 'is missing'
  return verified
    ? `You can send from it, but ${first.name} ${what}: mail may be refused or land in spam.`
    : `Not verified: ${first.name} ${what}. Publish it where the domain’s DNS is kept; it can take an hour to show.`
}

/** What DNS has just now; without an answer, what to publish. */
async function recordsOf(
  { team }: TeamRequest,
  { database, lookupTxt, spfIncludes }: PageDeps,
  name: string,
): Promise<readonly Line[]> {
  try {
    return (await checkDomain({ database, lookupTxt, spfIncludes }, team.id, name)).records
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'unavailable') throw error
    return domainView(await requireDomain(database, team.id, name), spfIncludes).dns_records
  }
}

const page = get('viewer', '/teams/:team/domains/:name', async (request, deps) => {
  const { team, params, now } = request
  const domain = await requireDomain(deps.database, team.id, params.name)
  const at = (verb: string): string => teamPath(team, 'domains', domain.name, verb)
  const [records, zone] = await Promise.all([recordsOf(request, deps, domain.name), deps.zoneOf(domain.name)])
  const others = records.filter(({ state }) => state === 'different')
  return show({
    title: domain.name,
    state: status(domain.status),
    back: { href: teamPath(team, 'domains'), label: 'Domains' },
    lead: leadOf(domain.status === 'verified', records),
    actions: {
      forms:
        team.role === 'owner'
          ? [
              press(at('verify'), 'Verify now'),
              press(at('rekey'), 'Rotate the DKIM key', {
                fields: [hidden('seen', domain.next_dkim_selector ?? domain.dkim_selector, true)],
                tone: 'quiet',
              }),
              press(at('delete'), 'Remove domain', { tone: 'danger' }),
            ]
          : [],
    },
    sections: compact([
      recordTable(records, zone),
      others.length > 0 && otherTable(others),
      factsOf({
        Verified: time(domain.verified_at, now, 'not yet'),
        'Missing since': domain.missing_since && time(domain.missing_since, now),
        'Last checked': time(now.toISOString(), now),
      }),
      { kind: 'text', title: 'Return path', paragraphs: [RETURN_PATH] },
    ]),
  })
})

const add = act('owner', '/teams/:team/domains', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  const row = await addDomain(by, team.id, { name, verified: false })
  return redirect(
    teamPath(team, 'domains', row.name),
    `${row.name} was added. Publish these records, then verify it.`,
  )
})

/** DNS is asked before the transaction, which is the use case's own. */
const verify = post('owner', '/teams/:team/domains/:name/verify', async ({ team, params, person }, deps) => {
  const name = params.name
  const by = { now: await serviceTime(deps.database), actor: person.email }
  const { status: word, records } = await verifyDomain({ ...deps, ...by }, team.id, name)
  const lacks = records.filter(({ required, state }) => required && state !== 'found')
  const back = teamPath(team, 'domains', name)
  const [first] = lacks
  if (!first) return redirect(back, `${name} is verified: you can send from it.`)
  const words = `${first.name} is ${first.state} in DNS. New records can take an hour to show.`
  return redirect(back, { tone: word === 'verified' ? 'good' : 'bad', text: words })
})

const rekey = act(
  'owner',
  '/teams/:team/domains/:name/rekey',
  async (by, { team, params, form }) => {
    const { name } = params
    await rekeyDomain(by, team.id, name, { seen: form.get('seen') })
    const words = 'A new key was created. Publish its record, then verify. Until then the old key signs.'
    return redirect(teamPath(team, 'domains', name), words)
  },
  async ({ team, params }, { database }) => ({
    question: `Rotate the DKIM key of ${(await requireDomain(database, team.id, params.name)).name}?`,
    answer: 'Rotate the DKIM key',
    warning: 'Publish the new key’s record, then verify. Until then the old key signs.',
  }),
)

const remove = act(
  'owner',
  '/teams/:team/domains/:name/delete',
  async (by, { team, params: { name } }) => {
    await removeDomain(by, team.id, name)
    return redirect(teamPath(team, 'domains'), `${name} was removed.`)
  },
  async ({ team, params }, { database }) => ({
    question: `Remove ${(await requireDomain(database, team.id, params.name)).name}?`,
    answer: 'Remove domain',
    warning: 'Nothing can be sent from it any more. Emails that were sent stay.',
    tone: 'danger',
  }),
)

export const domainsPages = [list, page, add, verify, rekey, remove]
