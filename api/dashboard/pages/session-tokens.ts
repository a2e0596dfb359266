/** Session tokens: members create them for themselves, and owners revoke them all. */

import { endToken, makeToken, tokensFor } from '../../../db/accounts/credentials/tokens.ts'
import { text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { already, requireFound } from '../server/already.ts'
import { action, buildTable, button, buttonCell, compact, get } from '../server/builders.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { isFrozen } from '../server/read-only.ts'
import { integrationTabs } from './integration.ts'

type Token = Awaited<ReturnType<typeof tokensFor>>[number]

const tokenPath = ({ team }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'integration', 'tokens', ...rest)

/** Lists a token's permissions, which depend on the current role of its user. */
const describeRights = ({ role }: Token): string =>
  role === 'viewer' ? 'none' : 'send, cancel, reschedule, unsubscribe'

function describeNone({ team }: TeamRequest, hadSome: boolean): string {
  if (hadSome) return 'No active session tokens.'
  return team.member
    ? 'You have no session tokens. Create one to try a request as yourself.'
    : 'The team has no session tokens.'
}

function tokensTable(request: TeamRequest, tokens: readonly Token[], empty: string): Section {
  const { team, person, now } = request
  const revokes = !isFrozen(team, person)
  return buildTable(
    tokens,
    (row) => ({
      User: text(row.user ?? 'the team', { detail: row.role ?? 'created by an operator' }),
      Permissions: text(describeRights(row)),
      Created: time(row.created_at, now),
      Expires: time(row.expires_at, now),
      '': revokes && buttonCell(tokenPath(request, row.id, 'revoke'), 'Revoke token', { tone: 'danger' }),
    }),
    { id: 'tokens', grow: ['User'], wrap: ['Permissions'], empty },
  )
}

const revokedTable = (tokens: readonly Token[], { now }: TeamRequest): Section =>
  buildTable(
    tokens,
    ({ user, created_at, revoked_at }) => ({
      User: text(user ?? 'the team'),
      Created: time(created_at, now),
      Revoked: time(revoked_at, now),
    }),
    { title: 'Revoked tokens', fold: true, empty: '' },
  )

const page = get('viewer', '/teams/:team/integration/tokens', async (request, { database }) => {
  const { team, person, now } = request
  const who = { user_id: person.user_id, role: team.sees }
  const tokens = await tokensFor({ tx: database, now }, team.id, who)
  const active = tokens.filter(({ revoked_at }) => revoked_at === null)
  const revoked = tokens.filter(({ revoked_at }) => revoked_at !== null)
  return show({
    title: 'Session tokens',
    lead: 'A session token calls the API as you, for example to try a request. It expires after 30 days. Applications use API keys.',
    actions: { forms: team.member ? [button(tokenPath(request), 'Create a session token')] : [] },
    sections: compact([
      integrationTabs(team, 'tokens'),
      tokensTable(request, active, describeNone(request, revoked.length > 0)),
      revoked.length > 0 && revokedTable(revoked, request),
    ]),
  })
})

const make = action('viewer', '/teams/:team/integration/tokens', async (by, { team, person }) => {
  const { token } = await makeToken(by, team.id, { user_id: person.user_id, role: team.role })
  const words = 'Your session token is valid for 30 days. Copy it now. It isn’t shown again.'
  return redirect(teamPath(team, 'integration', 'tokens'), { tone: 'good', text: words, secret: token })
})

const revoke = action(
  'viewer',
  '/teams/:team/integration/tokens/:id/revoke',
  async (by, { team, params, person }) => {
    await endToken(by, team.id, params.id, { user_id: person.user_id, role: team.role })
    return redirect(teamPath(team, 'integration', 'tokens'), 'The session token is revoked.')
  },
).confirm(async ({ team, params, person, now }, { database }) => {
  const who = { user_id: person.user_id, role: team.sees }
  const found = (await tokensFor({ tx: database, now }, team.id, who)).find(({ id }) => id === params.id)
  const token = requireFound(found, "This session token doesn't exist.")
  if (token.revoked_at !== null) throw already('This session token', 'revoked')
  return {
    question: `Revoke this session token of ${token.user ?? 'the team'}? Requests with it are rejected immediately.`,
    answer: 'Revoke token',
    tone: 'danger',
  }
})

export const sessionTokenPages = [page, make, revoke]
