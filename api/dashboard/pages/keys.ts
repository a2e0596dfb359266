/** Lists API keys and creates new ones, which are shown once. A key's page has its last use and rejected calls. */

import { keyCreators } from '../../../db/accounts/audit/audit.sql.ts'
import {
  type KeyRow,
  keysOfTeam,
  SCOPES,
  type Scope,
} from '../../../db/accounts/credentials/credentials.sql.ts'
import { issueKey, rotateKey } from '../../../db/accounts/credentials/issue.ts'
import { endKey } from '../../../db/accounts/credentials/revoke.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { CALLS_STORED, rejectedCalls } from '../../../db/accounts/rejections/refusals.sql.ts'
import { CHANNEL_FACTS } from '../../../db/channels/list.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { actorName } from '../components/action-labels.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { momentWords, parseZone } from '../components/zone.ts'
import { already, requireFound } from '../server/already.ts'
import {
  action,
  buildFacts,
  buildForm,
  buildOptions,
  buildTable,
  button,
  compact,
  field,
  get,
} from '../server/builders.ts'
import { dayLabel } from '../server/filter.ts'
import { readDay } from '../server/list.ts'
import { forOthers, type PageTeam, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortable } from '../server/sort.ts'
import { TEXTS } from '../texts.ts'
import { rejectedTable } from './api-log.ts'

export function keyState({ revoked_at, expires_at }: KeyRow, now: Date): 'active' | 'revoked' | 'expired' {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && new Date(expires_at) <= now ? 'expired' : 'active'
}

/** Shows the state of a key. Keys of a suspended team don't work. */
function stateCell(key: KeyRow, { suspended }: Pick<PageTeam, 'suspended'>, now: Date): Cell {
  const state = keyState(key, now)
  return suspended && state === 'active' ? status('suspended', { tone: 'warn' }) : status(state)
}

const HOUR_MS = 3_600_000

/** Shows the last use of a key. Uses are stored by the hour, so minutes aren't known. */
const lastUse = ({ last_used_at: at }: KeyRow, now: Date): Cell =>
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

const scopeWords = (scopes: readonly string[]): string =>
  SCOPES.every((scope) => scopes.includes(scope)) ? 'everything' : scopes.join(', ')

const createdBy = (actor: string | undefined): string | undefined => actor && `by ${actorName(actor)}`

/** Builds the field for the last day of a key, which is included. */
const lastDayField = ({ cookies }: TeamRequest) =>
  field('expires', dayLabel('Last day', parseZone(cookies('zone'))), {
    type: 'date',
    hint: 'Leave it empty for a key that doesn’t expire.',
  })

const readExpiry = ({ form, cookies }: TeamRequest): Date | null =>
  readDay(form, 'expires', { zone: parseZone(cookies('zone')), next: true }) ?? null

function createForm(request: TeamRequest, domains: readonly string[]): Section {
  return buildForm(teamPath(request.team, 'keys'), 'Create key', {
    title: 'Create a key',
    folded: true,
    fields: [
      field('name', 'Name', {
        required: true,
        placeholder: 'web shop',
        hint: 'The program that uses it. With a key for each program, you can revoke one without stopping the others.',
      }),
      field('scopes', 'Scopes', {
        type: 'checks',
        options: buildOptions(SCOPES, ['emails:send'], scopeLabel),
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
  })
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
      Status: team.suspended && stateCell(key, team, now),
      Scopes: scopesCell(key),
      'Last used': lastUse(key, now),
      Created: { ...time(key.created_at, now), detail: createdBy(creators.get(key.prefix)) },
      Expires: time(key.expires_at, now),
    }),
    {
      id: 'keys',
      grow: ['Name', 'Scopes'],
      empty:
        team.role === 'owner' ? 'No active keys. Create one for each program that sends.' : 'No active keys.',
    },
  )

const endedTable = ({ team, now }: TeamRequest, keys: readonly KeyRow[]): Section =>
  buildTable(
    keys,
    (key) => ({
      Name: nameCell(key, team),
      Status: stateCell(key, team, now),
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
    lead: `Programs call the API with a key. The full key is shown only once, when you create it.${forOthers(team, 'create keys')}`,
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

/** @throws RequestError not_found */
const requireKey = async (database: Tx, teamId: string, id: string): Promise<KeyRow> =>
  requireFound(
    (await keysOfTeam(database, teamId)).find((key) => key.id === id),
    TEXTS.noKey,
  )

const page = get('viewer', '/teams/:team/keys/:id', async (request, { database }) => {
  const { team, params, now } = request
  const key = await requireKey(database, team.id, params.id)
  const creators = await keyCreators(database, team.id, [key])
  const calls = await rejectedCalls(database, team.id, key.prefix)
  const isActive = keyState(key, now) === 'active'
  const at = (verb: string): string => teamPath(team, 'keys', key.id, verb)
  return show({
    title: key.name,
    lead: isActive ? forOthers(team, 'rotate and revoke keys').trim() : undefined,
    state: isActive && !team.suspended ? undefined : stateCell(key, team, now),
    back: { href: teamPath(team, 'keys'), label: 'API keys' },
    actions: {
      links: compact([
        isActive && {
          href: teamPath(team, 'integration'),
          label: 'Example requests',
          main: team.role === 'owner' && key.last_used_at === null,
        },
      ]),
      forms:
        team.role === 'owner' && isActive ? [button(at('revoke'), 'Revoke key', { tone: 'danger' })] : [],
    },
    sections: compact([
      team.role === 'owner' &&
        isActive &&
        buildForm(at('rotate'), 'Create the new key', {
          title: 'Rotate',
          note: 'The new key has the same name, scopes and domain. This key works for another 24 hours, or until it expires if that is sooner.',
          folded: 'quiet',
          fields: [lastDayField(request)],
        }),
      buildFacts(
        {
          Key: text(`${key.prefix}…`, { code: true }),
          'Last used': lastUse(key, now),
          Scopes: text(scopeWords(key.scopes)),
          'Sends from': text(key.domain ?? 'any domain of the team'),
          Created: { ...time(key.created_at, now), detail: createdBy(creators.get(key.prefix)) },
          Expires: time(key.expires_at, now),
          Revoked: key.revoked_at !== null && time(key.revoked_at, now),
        },
        { id: 'facts', live: true },
      ),
      rejectedTable(calls, request, {
        title: 'Rejected calls',
        note: `Only the last ${CALLS_STORED} rejected calls of the team are stored.`,
      }),
    ]),
  })
})

const rotate = action('owner', '/teams/:team/keys/:id/rotate', async (by, request) => {
  const { team, params, cookies } = request
  const { id, key, name, replaces } = await rotateKey(by, team.id, params.id, readExpiry(request))
  const end = replaces.expires_at
  const until =
    end === null ? '' : ` The old key works until ${momentWords(end, parseZone(cookies('zone')))}.`
  const words = `The new key ${name} was created. Copy it now. It isn’t shown again.${until}`
  return redirect(teamPath(team, 'keys', id), { tone: 'good', text: words, secret: key })
})

const revoke = action('owner', '/teams/:team/keys/:id/revoke', async (by, { team, params }) => {
  const row = await endKey(by, team.id, params.id)
  return redirect(teamPath(team, 'keys', row.id), `The key ${row.name} was revoked.`)
}).confirm(async ({ team, params, now }, { database }) => {
  const key = await requireKey(database, team.id, params.id)
  if (key.revoked_at !== null) throw already(`The key ${key.name}`, 'revoked')
  const used = lastUse(key, now)
  return {
    question: `Revoke the key ${key.name}? Requests with it are rejected from then on.`,
    answer: 'Revoke key',
    warning: `It starts with ${key.prefix}. Last used: ${used.age ?? used.text}.`,
    tone: 'danger',
  }
})

export const keysPages = [list, create, page, rotate, revoke]
