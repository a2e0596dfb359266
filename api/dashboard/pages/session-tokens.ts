/** Session tokens: members create them for themselves, and owners revoke them all. */

import { endToken, makeToken, tokensFor } from '../../../db/accounts/credentials/tokens.ts'
import { RequestError } from '../../../db/errors.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import { already } from '../server/already.ts'
import { action, buildTable, button, buttonCell, get } from '../server/builders.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { isFrozen } from '../server/read-only.ts'
import { integrationTabs } from './integration-tabs.ts'

type Token = Awaited<ReturnType<typeof tokensFor>>[number]

const tokenPath = ({ team }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'integration', 'tokens', ...rest)

const revokeButton = (request: TeamRequest, { id }: Token): Cell =>
  buttonCell(tokenPath(request, id, 'revoke'), 'Revoke token', { tone: 'danger' })

/** Lists a token's permissions, which depend on the current role of its user. */
const describeRights = ({ role }: Token): string =>
  role === 'viewer' ? 'none' : 'send, cancel, reschedule, unsubscribe'

const page = get('viewer', '/teams/:team/integration/tokens', async (request, { database }) => {
  const { team, person, now } = request
  const who = { user_id: person.user_id, role: team.sees }
  const isReadOnly = isFrozen(team, person)
  return show({
    title: 'Session tokens',
    lead: 'Use an API key in a program, and a session token to call the API as yourself. A token sends single messages, cancels or reschedules them, and unsubscribes recipients. It expires after 30 days.',
    actions: { forms: team.member ? [button(tokenPath(request), 'Create a session token')] : [] },
    sections: [
      integrationTabs(team, 'tokens'),
      buildTable(
        await tokensFor({ tx: database, now }, team.id, who),
        (row) => ({
          User: text(row.user ?? 'the team', { detail: row.role ?? 'created by an operator' }),
          State: status(row.revoked_at === null ? 'active' : 'revoked'),
          Permissions: text(describeRights(row)),
          Created: time(row.created_at, now),
          Expires: time(row.expires_at, now),
          Action: !isReadOnly && (row.revoked_at === null ? revokeButton(request, row) : text('')),
        }),
        {
          id: 'tokens',
          grow: ['User', 'Permissions'],
          empty: `No session tokens yet.${team.member ? ' Create one to call the API as yourself.' : ''}`,
        },
      ),
    ],
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
  async ({ team, params, person, now }, { database }) => {
    const who = { user_id: person.user_id, role: team.sees }
    const token = (await tokensFor({ tx: database, now }, team.id, who)).find(({ id }) => id === params.id)
    if (!token) throw new RequestError('not_found', "This session token doesn't exist.")
    if (token.revoked_at !== null) throw already('This session token', 'revoked')
    return {
      question: `Revoke this session token of ${token.user ?? 'the team'}? Requests with it are rejected immediately.`,
      answer: 'Revoke token',
      tone: 'danger',
    }
  },
)

export const sessionTokenPages = [page, make, revoke]
