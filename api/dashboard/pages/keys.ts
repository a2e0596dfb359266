/** Lists API keys and creates new ones, which are shown once. A key's page has its last use and rejected calls. */

import { keyCreators } from '../../../db/accounts/audit/audit.sql.ts'
import {
  type KeyRow,
  keysOfTeam,
  SCOPES,
  type Scope,
} from '../../../db/accounts/credentials/credentials.sql.ts'
import { issueKey } from '../../../db/accounts/credentials/issue.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { CHANNEL_FACTS } from '../../../db/channels/list.ts'
import { actorName } from '../components/action-labels.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { parseZone } from '../components/zone.ts'
import { action, buildForm, buildTable, compact, field, get } from '../server/builders.ts'
import { dayLabel } from '../server/filter.ts'
import { readDay } from '../server/list.ts'
import { type PageTeam, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortable } from '../server/sort.ts'

export function keyState({ revoked_at, expires_at }: KeyRow, now: Date): 'active' | 'revoked' | 'expired' {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && new Date(expires_at) <= now ? 'expired' : 'active'
}

/** Shows the state of a key. Keys of a suspended team don't work. */
export function stateCell(key: KeyRow, { suspended }: Pick<PageTeam, 'suspended'>, now: Date): Cell {
  const state = keyState(key, now)
  return suspended && state === 'active' ? status('suspended', { tone: 'warn' }) : status(state)
}

const HOUR_MS = 3_600_000

/** Shows the last use of a key. Uses are stored by the hour, so minutes aren't known. */
export const lastUse = ({ last_used_at: at }: KeyRow, now: Date): Cell =>
  at !== null && now.getTime() - Date.parse(at) < HOUR_MS ? text('within the last hour') : time(at, now)

const SCOPE_USES: Readonly<Partial<Record<Scope, string>>> = {
  ...Object.fromEntries(
    CHANNEL_FACTS.map(({ scope, quota }) => [scope, `send, cancel and reschedule ${quota.noun}`]),
  ),
  'contacts:read': 'read contacts',
  'contacts:write': 'add, change and delete contacts',
  'broadcasts:read': 'read broadcasts with their stats',
  'broadcasts:write': 'create, change and delete drafts of broadcasts',
  'broadcasts:send': 'test, start, pause and cancel broadcasts',
}

const scopeLabel = (scope: Scope): string => {
  const use = SCOPE_USES[scope]
  return use === undefined ? scope : `${scope}: ${use}`
}

export const scopeWords = (scopes: readonly string[]): string =>
  SCOPES.every((scope) => scopes.includes(scope)) ? 'everything' : scopes.join(', ')

/** Names the creator of a key, if it is known. */
export const createdBy = (actor: string | undefined): string | undefined => actor && `by ${actorName(actor)}`

/** Builds the field for the last day of a key, which is included. */
export const lastDayField = ({ cookies }: TeamRequest) =>
  field('expires', dayLabel('Last day', parseZone(cookies('zone'))), {
    type: 'date',
    hint: 'Leave it empty for a key that doesn’t expire.',
  })

export const readExpiry = ({ form, cookies }: TeamRequest): Date | null =>
  readDay(form, 'expires', { zone: parseZone(cookies('zone')), next: true }) ?? null

function createForm(request: TeamRequest, domains: readonly string[]): Section {
  return buildForm(
    teamPath(request.team, 'keys'),
    'Create key',
    [
      field('name', 'Name', {
        required: true,
        placeholder: 'web shop',
        hint: 'The program that uses it. With a key for each program, you can revoke one without stopping the others.',
      }),
      field('scopes', 'Scopes', {
        type: 'checks',
        options: SCOPES.map((scope) => ({
          value: scope,
          label: scopeLabel(scope),
          selected: scope === 'emails:send',
        })),
      }),
      field('domain', 'Sending domain', {
        type: 'select',
        options: [
          { value: '', label: 'any domain of the team' },
          ...domains.map((name) => ({ value: name, label: `only ${name}` })),
        ],
      }),
      lastDayField(request),
    ],
    { title: 'New key', folded: true },
  )
}

type Creators = ReadonlyMap<string, string>

const nameCell = ({ id, name, prefix }: KeyRow, team: PageTeam): Cell =>
  text(name, { href: teamPath(team, 'keys', id), detail: `${prefix}…` })

const scopesCell = ({ scopes, domain }: KeyRow): Cell =>
  text(scopeWords(scopes), { detail: domain === null ? undefined : `only from ${domain}` })

const activeTable = ({ team, now }: TeamRequest, keys: readonly KeyRow[], creators: Creators) =>
  buildTable(
    keys,
    (key) => ({
      Name: nameCell(key, team),
      State: team.suspended && stateCell(key, team, now),
      Scopes: scopesCell(key),
      'Last used': lastUse(key, now),
      Created: { ...time(key.created_at, now), detail: createdBy(creators.get(key.prefix)) },
      Expires: time(key.expires_at, now),
    }),
    {
      id: 'keys',
      grow: ['Name', 'Scopes'],
      empty:
        team.role === 'owner'
          ? 'No active keys. Create one for each program that sends.'
          : 'No active keys. An owner of the team can create one.',
    },
  )

const endedTable = ({ team, now }: TeamRequest, keys: readonly KeyRow[]): Section =>
  buildTable(
    keys,
    (key) => ({
      Name: nameCell(key, team),
      State: stateCell(key, team, now),
      Ended: time(key.revoked_at ?? key.expires_at, now),
      'Last used': lastUse(key, now),
    }),
    { title: 'Revoked and expired keys', id: 'ended', fold: true, empty: '' },
  )

const list = get('viewer', '/teams/:team/keys', async (request, { database }) => {
  const { team, now } = request
  const keys = [...(await keysOfTeam(database, team.id))].reverse()
  const isActive = (key: KeyRow): boolean => keyState(key, now) === 'active'
  const [active, ended] = [keys.filter(isActive), keys.filter((key) => !isActive(key))]
  const creators = await keyCreators(database, team.id, active)
  const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
  return show({
    title: 'API keys',
    lead: 'Programs call the API with a key. Only its first characters stay visible.',
    sections: compact([
      sortable(request, activeTable(request, active, creators)),
      ended.length > 0 && endedTable(request, ended),
      team.role === 'owner' && createForm(request, domains),
    ]),
  })
})

const create = action('owner', '/teams/:team/keys', async (by, request) => {
  const { team, form } = request
  const name = (form.get('name') ?? '').trim()
  const wanted = {
    name,
    scopes: form.getAll('scopes'),
    domain: form.get('domain') || null,
    expires_at: readExpiry(request),
  }
  const { id, key } = await issueKey(by, team.id, wanted)
  const words = `The key ${name} was created. Copy it now. It isn’t shown again.`
  return redirect(teamPath(team, 'keys', id), { tone: 'good', text: words, secret: key })
})

export const keysPages = [list, create]
