/** All teams, how much each has used, and their plans. */
import { record } from '../../../../db/accounts/audit/record.ts'
import { allPlans } from '../../../../db/accounts/plans/plans.sql.ts'
import { createTeam } from '../../../../db/accounts/teams/create.ts'
import { accountRowsOf, teamsAfter } from '../../../../db/accounts/teams/directory.sql.ts'
import { accountOf } from '../../../../db/accounts/teams/limits.ts'
import { subscribeTeam } from '../../../../db/accounts/teams/subscribe.ts'
import { resumeTeam, suspendTeam } from '../../../../db/accounts/teams/suspend.ts'
import { showTeam, teamOrRefusal } from '../../../../db/accounts/teams/view.ts'
import { Refusal } from '../../../../db/errors.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { ageOf, type Cell, number, text, time } from '../../drawn/cell.ts'
import type { Field, Section } from '../../drawn/section.ts'
import { given, idGiven, PAGE_SIZE, pageOf } from '../../served/list.ts'
import { type PersonPage, redirect, show, teamPath } from '../../served/page.ts'

const PATH = '/operator/teams'
const planPath = (id: string): string => `${PATH}/${id}/plan`

/** What is used of a limit, as a number with the limit under it. */
const usage = (used: number, limit: number | null): Cell =>
  number(used, { detail: limit === null ? 'no limit' : `of ${limit.toLocaleString('en-US')}` })

const planField = async (tx: Tx, chosen?: string): Promise<Field> => {
  const plans = (await allPlans(tx)).filter(({ product }) => product === 'transactional')
  const options = plans.map(({ key, name }) => ({
    value: key,
    label: `${name.en} (${key})`,
    selected: key === chosen,
  }))
  return { name: 'plan', label: 'Plan', type: 'select', options, required: true }
}

const teams: PersonPage = {
  method: 'GET',
  path: PATH,
  access: 'operator',
  async handle(request, { database }) {
    const { query, now } = request
    const found = await teamsAfter(database, {
      name: given(query, 'name'),
      before: idGiven(query, 'before'),
      limit: PAGE_SIZE + 1,
    })
    const { rows, next } = pageOf(request, found, ({ id }) => id)
    const accounts = await accountRowsOf(
      database,
      rows.map(({ id }) => id),
    )
    return show({
      title: 'Teams',
      sections: [
        {
          kind: 'filter',
          action: PATH,
          method: 'get',
          fields: [{ name: 'name', label: 'Name', type: 'search', value: given(query, 'name') ?? '' }],
          submit: 'Filter',
          reset: query.size > 0 ? { href: PATH, label: 'All teams' } : null,
        },
        {
          kind: 'table',
          columns: [
            { label: 'Team' },
            { label: 'Plan' },
            { label: 'Emails', number: true },
            { label: 'WhatsApp', number: true },
            { label: 'Contacts', number: true },
            { label: 'Created' },
          ],
          rows: rows.map((team) => {
            const row = accounts.get(team.id)
            const account = row && accountOf(row)
            return {
              cells: [
                text(team.name, {
                  href: teamPath(team),
                  detail: team.suspended_at === null ? team.id : 'suspended',
                }),
                text(team.plan, { href: planPath(team.id) }),
                usage(account?.used.emails ?? 0, account?.limits.emails ?? null),
                usage(account?.used.whatsapp ?? 0, account?.limits.whatsapp ?? null),
                usage(account?.used.contacts ?? 0, account?.limits.contacts ?? null),
                time(team.created_at, now),
              ],
            }
          }),
          empty: 'No team fits.',
          next,
        },
        {
          kind: 'form',
          title: 'New team',
          action: PATH,
          method: 'post',
          folded: true,
          fields: [
            { name: 'name', label: 'Name', type: 'text', required: true },
            await planField(database, 'free'),
          ],
          submit: 'Create team',
        },
      ],
    })
  },
}

const create: PersonPage = {
  method: 'POST',
  path: PATH,
  access: 'operator',
  async handle({ form, person, now }, { database }) {
    const team = await database.transaction(async (tx) => {
      const made = await createTeam(
        { tx },
        { name: form.get('name') ?? '', plan: form.get('plan') ?? 'free' },
      )
      const deed = { team_id: made.id, action: 'team.create', subject: made.name, detail: made.plan }
      await record({ tx, now, actor: person.email }, deed)
      return made
    })
    return redirect(teamPath(team), `The team ${team.name} is there. Add a domain and a key next.`)
  },
}

const FIGURES = [
  ['email_limit', 'Emails per period'],
  ['contact_limit', 'Contacts'],
  ['whatsapp_limit', 'WhatsApp messages per period'],
  ['send_rate_per_second', 'Emails per second'],
] as const

/** The button that suspends a team, or resumes it. */
const suspension = (id: string, suspendedAt: string | null, now: Date): Section => ({
  kind: 'actions',
  title: 'Suspension',
  note:
    suspendedAt === null
      ? 'A suspended team’s keys and sessions are refused, and what it has queued waits.'
      : `Suspended ${ageOf(suspendedAt, now)}: its credentials are refused, and what it has queued waits.`,
  forms: [
    {
      action: `${PATH}/${id}/${suspendedAt === null ? 'suspend' : 'resume'}`,
      method: 'post',
      fields: [],
      submit: suspendedAt === null ? 'Suspend team' : 'Resume team',
      ...(suspendedAt === null ? { tone: 'danger', confirm: 'Suspend this team?' } : {}),
    },
  ],
})

const plan: PersonPage = {
  method: 'GET',
  path: `${PATH}/:id/plan`,
  access: 'operator',
  async handle({ params, now }, { database }) {
    const team = await showTeam(database, params.id ?? '')
    const { suspended_at } = await teamOrRefusal(database, team.id)
    const { limits, period } = team
    return show({
      title: `Plan of ${team.name}`,
      back: { href: PATH, label: 'Teams' },
      sections: [
        {
          kind: 'facts',
          facts: [
            { label: 'Plan', cell: text(team.plan) },
            { label: 'Emails', cell: usage(team.used.emails, limits.emails) },
            { label: 'Contacts', cell: usage(team.used.contacts, limits.contacts) },
            { label: 'WhatsApp messages', cell: usage(team.used.whatsapp, limits.whatsapp) },
            { label: 'Emails per second', cell: number(limits.rate) },
            { label: 'Period', cell: text(`${period.start.slice(0, 10)} to ${period.end.slice(0, 10)}`) },
          ],
        },
        {
          kind: 'form',
          title: 'Change it',
          note: 'A figure that is left empty stays as it is; “plan” takes the team’s own figure off.',
          action: planPath(team.id),
          method: 'post',
          fields: [
            await planField(database, team.plan),
            ...FIGURES.map(
              ([name, label]): Field => ({ name, label, type: 'text', placeholder: 'as it is' }),
            ),
          ],
          submit: 'Change the plan',
        },
        suspension(team.id, suspended_at, now),
      ],
    })
  },
}

/** A figure of the form: a number, null for the plan's own, undefined where it stays. @throws Refusal bad_request. */
function figureOf(form: URLSearchParams, name: string, label: string): number | null | undefined {
  const value = form.get(name)?.trim() ?? ''
  if (value === '') return undefined
  if (value === 'plan') return null
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value)
  throw new Refusal('bad_request', `${label} must be a number, or “plan”`)
}

const changePlan: PersonPage = {
  method: 'POST',
  path: `${PATH}/:id/plan`,
  access: 'operator',
  async handle({ params, form, person, now }, { database }) {
    const figures = FIGURES.flatMap(([name, label]) => {
      const value = figureOf(form, name, label)
      return value === undefined ? [] : [[name, value] as const]
    })
    const id = params.id ?? ''
    const change = { plan: form.get('plan') ?? '', ...Object.fromEntries(figures) }
    const team = await database.transaction(async (tx) => {
      const changed = await subscribeTeam({ tx }, id, change)
      const detail = figures.map(([name, value]) => `${name} ${value ?? 'plan'}`).join(', ')
      const deed = { team_id: id, action: 'team.plan', subject: changed.plan, detail }
      await record({ tx, now, actor: person.email }, deed)
      return changed
    })
    return redirect(planPath(id), `${team.name} is on the plan ${team.plan}.`)
  },
}

const suspend: PersonPage = {
  method: 'POST',
  path: `${PATH}/:id/suspend`,
  access: 'operator',
  async handle({ params, person, now }, { database }) {
    const id = params.id ?? ''
    const team = await database.transaction(async (tx) => {
      const suspended = await suspendTeam({ tx, now }, id)
      const deed = { team_id: id, action: 'team.suspend', subject: suspended.name }
      await record({ tx, now, actor: person.email }, deed)
      return suspended
    })
    return redirect(planPath(id), `${team.name} is suspended.`)
  },
}

const resume: PersonPage = {
  method: 'POST',
  path: `${PATH}/:id/resume`,
  access: 'operator',
  async handle({ params, person, now }, { database }) {
    const id = params.id ?? ''
    const team = await database.transaction(async (tx) => {
      const resumed = await resumeTeam({ tx }, id)
      const deed = { team_id: id, action: 'team.resume', subject: resumed.name }
      await record({ tx, now, actor: person.email }, deed)
      return resumed
    })
    return redirect(planPath(id), `${team.name} is resumed: what it had queued goes out.`)
  },
}

export const teamPages = [teams, create, plan, changePlan, suspend, resume]
