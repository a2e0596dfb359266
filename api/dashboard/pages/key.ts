/** The page of an API key: permissions, last use and rejected calls. Rotates and revokes the key. */

import { keyCreators } from '../../../db/accounts/audit/audit.sql.ts'
import { type KeyRow, keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { rotateKey } from '../../../db/accounts/credentials/issue.ts'
import { endKey } from '../../../db/accounts/credentials/revoke.ts'
import { CALLS_STORED, rejectedCalls } from '../../../db/accounts/rejections/refusals.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { text, time } from '../components/cell.ts'
import { momentWords, parseZone } from '../components/zone.ts'
import { already } from '../server/already.ts'
import { action, buildFacts, buildForm, button, compact, get } from '../server/builders.ts'
import { redirect, show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { rejectedTable } from './api-log.ts'
import { createdBy, keyState, lastDayField, lastUse, readExpiry, scopeWords, stateCell } from './keys.ts'

/** @throws RequestError not_found */
async function requireKey(database: Tx, teamId: string, id: string): Promise<KeyRow> {
  const key = (await keysOfTeam(database, teamId)).find((one) => one.id === id)
  if (!key) throw new RequestError('not_found', TEXTS.noKey)
  return key
}

const page = get('viewer', '/teams/:team/keys/:id', async (request, { database }) => {
  const { team, params, now } = request
  const key = await requireKey(database, team.id, params.id)
  const creators = await keyCreators(database, team.id, [key])
  const calls = await rejectedCalls(database, team.id, key.prefix)
  const isActive = keyState(key, now) === 'active'
  const at = (verb: string): string => teamPath(team, 'keys', key.id, verb)
  return show({
    title: key.name,
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
        buildForm(at('rotate'), 'Create the new key', [lastDayField(request)], {
          title: 'Rotate',
          note: 'The new key has the same name, scopes and domain. This key works for another 24 hours, or until it expires if that is sooner.',
          folded: 'quiet',
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

const revoke = action(
  'owner',
  '/teams/:team/keys/:id/revoke',
  async (by, { team, params }) => {
    const row = await endKey(by, team.id, params.id)
    return redirect(teamPath(team, 'keys', row.id), `The key ${row.name} was revoked.`)
  },
  async ({ team, params, now }, { database }) => {
    const key = await requireKey(database, team.id, params.id)
    if (key.revoked_at !== null) throw already(`The key ${key.name}`, 'revoked')
    const used = lastUse(key, now)
    return {
      question: `Revoke the key ${key.name}? Requests with it are rejected from then on.`,
      answer: 'Revoke key',
      warning: `It starts with ${key.prefix}. Last used: ${used.age ?? used.text}.`,
      tone: 'danger',
    }
  },
)

export const keyPages = [page, rotate, revoke]
