/** Sending domains: the DNS records to publish, what DNS has in their place, and whether mail may be sent from them. */
import { addDomain, domainOrRefusal, domainView, removeDomain } from '../../../db/accounts/domains/add.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../../../db/accounts/domains/rekey.ts'
import { checkDomain, type RecordCheck, verifyDomain } from '../../../db/accounts/domains/verify.ts'
import { Refusal } from '../../../db/errors.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import { act, inTeam } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { redirect, show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'

/** How many records of one name are shown. */
const MOST_PUBLISHED = 10

const RETURN_PATH =
  'Each message has an envelope sender (Return-Path) of its own. It is at the domain that the operator has set for all mail (RETURN_PATH_DOMAIN); without one at this domain, whose MX then has to bring bounces back to the service.'

const list: TeamPage = {
  method: 'GET',
  path: '/teams/:team/domains',
  access: 'viewer',
  async handle({ team, now }, { database }) {
    const domains = await domainsOfTeam(database, team.id)
    return show({
      title: 'Domains',
      lead: 'Emails are sent from verified domains alone.',
      sections: [
        {
          kind: 'table',
          columns: ['Status', 'Name', 'Verified', 'Added'].map((label) => ({ label })),
          rows: domains.map(({ name, status: word, verified_at, created_at }) => ({
            cells: [
              status(word),
              text(name, { href: teamPath(team, 'domains', name) }),
              time(verified_at, now, 'not yet'),
              time(created_at, now),
            ],
          })),
          empty: 'No domains yet: add the one that you send from.',
        },
        ...(team.role === 'owner'
          ? [
              {
                kind: 'form' as const,
                action: teamPath(team, 'domains'),
                method: 'post' as const,
                submit: 'Add a domain',
                fields: [
                  {
                    name: 'name',
                    label: 'Name of a domain',
                    type: 'text' as const,
                    required: true,
                    placeholder: 'mail.example.com',
                    hint: 'What stands after the @ of your From address. A subdomain is a domain of its own.',
                  },
                ],
              },
            ]
          : []),
      ],
    })
  },
}

/** What a record is for. */
function purposeOf({ name }: { name: string }): string {
  if (name.includes('._domainkey.')) return 'DKIM: proves that the mail is yours'
  return name.startsWith('_dmarc.')
    ? 'DMARC: what to do with mail that is not'
    : 'SPF: who may send for the domain'
}

/** What is published; and what to publish, unless it is there. */
function recordSection(record: RecordCheck): Section {
  const need = record.required ? 'needed' : 'recommended'
  const isFound = record.state === 'found'
  const soft = record.required || isFound ? {} : { tone: 'warn' as const }
  return {
    kind: 'facts',
    title: `${purposeOf(record)} (${need})`,
    facts: [
      { label: 'In DNS', cell: status(record.state, soft) },
      { label: 'Type', cell: text(record.type, { code: true }) },
      { label: 'Name', cell: text(record.name, { code: true, copy: true }) },
      ...record.published
        .slice(0, MOST_PUBLISHED)
        .map((value) => ({ label: 'Published', cell: text(value, { code: true }) })),
      ...(isFound ? [] : [{ label: 'To publish', cell: text(record.value, { code: true, copy: true }) }]),
    ],
  }
}

/** What DNS has just now; without an answer, what to publish. */
async function recordSections(
  { team }: TeamRequest,
  { database, lookupTxt }: PageDeps,
  name: string,
): Promise<Section[]> {
  try {
    const { records } = await checkDomain({ database, lookupTxt }, team.id, name)
    return records.map(recordSection)
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'unavailable') throw error
    const domain = await domainOrRefusal(database, team.id, name)
    const title = 'DNS does not answer just now: what stands there is not known'
    return [
      { kind: 'alerts', calm: '', alerts: [{ tone: 'warn', title, text: error.message }] },
      ...domainView(domain).dns_records.map(
        ({ type, name: at, value }): Section => ({
          kind: 'facts',
          facts: [
            { label: 'Type', cell: text(type, { code: true }) },
            { label: 'Name', cell: text(at, { code: true, copy: true }) },
            { label: 'Value', cell: text(value, { code: true, copy: true }) },
          ],
        }),
      ),
    ]
  }
}

const page: TeamPage = {
  method: 'GET',
  path: '/teams/:team/domains/:name',
  access: 'viewer',
  async handle(request, deps) {
    const { team, params, now } = request
    const domain = await domainOrRefusal(deps.database, team.id, params.name ?? '')
    const press = (verb: string) => teamPath(team, 'domains', domain.name, verb)
    return show({
      title: domain.name,
      back: { href: teamPath(team, 'domains'), label: 'Domains' },
      lead: 'Publish these records where the domain’s DNS is kept. Each load of this page looks them up.',
      sections: [
        {
          kind: 'facts',
          facts: [
            { label: 'Status', cell: status(domain.status) },
            { label: 'Verified', cell: time(domain.verified_at, now, 'not yet') },
            { label: 'Last checked', cell: time(now.toISOString(), now) },
          ],
        },
        ...(team.role === 'owner'
          ? [
              {
                kind: 'actions' as const,
                forms: [
                  { action: press('verify'), method: 'post' as const, fields: [], submit: 'Verify now' },
                  {
                    action: press('rekey'),
                    method: 'post' as const,
                    fields: [],
                    submit: 'Rotate the DKIM key',
                    confirm: `Rotate the DKIM key of ${domain.name}? Its new record has to be published then.`,
                    tone: 'quiet' as const,
                  },
                  {
                    action: press('delete'),
                    method: 'post' as const,
                    fields: [],
                    submit: 'Remove',
                    tone: 'danger' as const,
                    confirm: `Remove ${domain.name}? Nothing is sent from it any more.`,
                  },
                ],
              },
            ]
          : []),
        ...(await recordSections(request, deps, domain.name)),
        { kind: 'text', title: 'Return path', paragraphs: [RETURN_PATH] },
      ],
    })
  },
}

const add: TeamPage = {
  method: 'POST',
  path: '/teams/:team/domains',
  access: 'owner',
  async handle(request, deps) {
    const { team, form } = request
    const name = (form.get('name') ?? '').trim()
    const row = await act(request, deps, inTeam(request, 'domain.add', name), (at) =>
      addDomain({ ...at, secrets: deps.secrets }, team.id, { name, verified: false }),
    )
    return redirect(teamPath(team, 'domains', row.name), `${row.name} is added: publish its records now.`)
  },
}

const verify: TeamPage = {
  method: 'POST',
  path: '/teams/:team/domains/:name/verify',
  access: 'owner',
  async handle(request, { database, lookupTxt }) {
    const { team, params, now, person } = request
    const name = params.name ?? ''
    const deps = { database, lookupTxt, now, actor: person.email }
    const { status: word, records } = await verifyDomain(deps, team.id, name)
    const lacks = records.filter(({ required, state }) => required && state !== 'found')
    const back = teamPath(team, 'domains', name)
    if (lacks.length === 0) return redirect(back, `${name} is verified: you can send from it.`)
    const [first] = lacks
    const words = `DNS lacks what is needed: ${first?.name} is ${first?.state}. New records can take an hour to show.`
    return redirect(back, { tone: word === 'verified' ? 'good' : 'bad', text: words })
  },
}

const rekey: TeamPage = {
  method: 'POST',
  path: '/teams/:team/domains/:name/rekey',
  access: 'owner',
  async handle(request, deps) {
    const { team, params } = request
    const name = params.name ?? ''
    await act(request, deps, inTeam(request, 'domain.rekey', name), ({ tx }) =>
      rekeyDomain({ tx, secrets: deps.secrets }, team.id, name),
    )
    const words = 'A new key is made: publish its record, then verify. Until then the old one signs.'
    return redirect(teamPath(team, 'domains', name), words)
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: '/teams/:team/domains/:name/delete',
  access: 'owner',
  async handle(request, deps) {
    const { team, params } = request
    const name = params.name ?? ''
    await act(request, deps, inTeam(request, 'domain.remove', name), ({ tx }) =>
      removeDomain(tx, team.id, name),
    )
    return redirect(teamPath(team, 'domains'), `${name} is removed.`)
  },
}

export const domainsPages = [list, page, add, verify, rekey, remove]
