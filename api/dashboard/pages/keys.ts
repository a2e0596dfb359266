/** API keys: what each may do and when it was used last; created, shown once, revoked. */

import { type KeyRow, keysOfTeam, SCOPES } from '../../../db/accounts/credentials/credentials.sql.ts'
import { issueKey } from '../../../db/accounts/credentials/issue.ts'
import { endKey } from '../../../db/accounts/credentials/revoke.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { act, buttonCell, compact, field, formOf, get, tableOf } from '../server/builders.ts'
import { dayLabel } from '../server/filter.ts'
import { dayOf } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'

export function keyState({ revoked_at, expires_at }: KeyRow, now: Date): 'active' | 'revoked' | 'expired' {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && new Date(expires_at) <= now ? 'expired' : 'active'
}

const HOUR = 3_600_000

/** When a key was used last: uses are noted by the hour that they fall into, so its minutes say nothing. */
const lastUse = ({ last_used_at: at }: KeyRow, now: Date): Cell =>
  at !== null && now.getTime() - Date.parse(at) < HOUR ? text('within the last hour') : time(at, now)

const revokeButton = ({ id }: KeyRow, { team }: TeamRequest): Cell =>
  buttonCell(teamPath(team, 'keys', id, 'revoke'), 'Revoke key', { tone: 'danger' })

function shownOf(key: KeyRow, request: TeamRequest) {
  const { team, now } = request
  const state = keyState(key, now)
  const domain = key.domain === null ? 'any domain' : `only from ${key.domain}`
  const action = state === 'active' ? revokeButton(key, request) : text('')
  return {
    State: team.suspended && state === 'active' ? status('suspended', { tone: 'warn' }) : status(state),
    Name: text(key.name, { detail: `${key.prefix}…` }),
    Scopes: text(key.scopes.join(', '), { detail: domain }),
    'Last used': lastUse(key, now),
    Expires: time(key.expires_at, now),
    Action: team.role === 'owner' && action,
  }
}

function createForm({ team }: TeamRequest, domains: readonly string[]): Section {
  return formOf(
    teamPath(team, 'keys'),
    'Create key',
    [
      field('name', 'Name', { required: true, placeholder: 'web shop' }),
      field('scopes', 'Permissions', {
        type: 'checks',
        options: SCOPES.map((scope) => ({ value: scope, label: scope, selected: scope === 'emails:send' })),
      }),
      field('domain', 'Sending domain', {
        type: 'select',
        options: [
          { value: '', label: 'any domain of the team' },
          ...domains.map((name) => ({ value: name, label: `only ${name}` })),
        ],
      }),
      field('expires', dayLabel('Last day'), {
        type: 'date',
        hint: 'Leave it empty for a key that does not expire.',
      }),
    ],
    { title: 'New key', folded: true },
  )
}

const list = get('viewer', '/teams/:team/keys', async (request, { database }) => {
  const { team } = request
  const keys = [...(await keysOfTeam(database, team.id))].reverse()
  const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
  return show({
    title: 'API keys',
    lead: 'A key is shown once, when it is created. Its last use is recorded to the hour.',
    sections: compact([
      tableOf(keys, (key) => shownOf(key, request), {
        id: 'keys',
        live: true,
        wrap: ['Scopes'],
        empty:
          team.role === 'owner'
            ? 'No keys yet. Create one for each program that sends.'
            : 'No keys yet. An owner of the team can create one.',
      }),
      team.role === 'owner' && createForm(request, domains),
    ]),
  })
})

const create = act('owner', '/teams/:team/keys', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  const wanted = {
    name,
    scopes: form.getAll('scopes'),
    domain: form.get('domain') || null,
    // The last day counts whole.
    expires_at: dayOf(form, 'expires', 1) ?? null,
  }
  const { key } = await issueKey(by, team.id, wanted)
  const words = `The key ${name} was created. Copy it now: it is not shown again.`
  return redirect(teamPath(team, 'keys'), { tone: 'good', text: words, secret: key })
})

const revoke = act(
  'owner',
  '/teams/:team/keys/:id/revoke',
  async (by, { team, params }) => {
    const row = await endKey(by, team.id, params.id)
    return redirect(teamPath(team, 'keys'), `The key ${row.name} was revoked.`)
  },
  async ({ team, params, now }, { database }) => {
    const key = (await keysOfTeam(database, team.id)).find(({ id }) => id === params.id)
    if (!key) throw new RequestError('not_found', "This key doesn't exist.")
    const used = lastUse(key, now)
    return {
      question: `Revoke the key ${key.name}? Every program that uses it is rejected at once.`,
      answer: 'Revoke key',
      warning: `It begins with ${key.prefix}. Last used: ${used.age ?? used.text}.`,
      tone: 'danger',
    }
  },
)

export const keysPages = [list, create, revoke]
