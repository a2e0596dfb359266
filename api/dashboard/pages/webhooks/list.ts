/** The team's own servers that get its events: listed, and made. */

import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import { addEndpoint, listEndpoints } from '../../../../db/messages/webhooks/endpoints.ts'
import { number, text, time } from '../../drawn/cell.ts'
import { act, get, some } from '../../served/made.ts'
import { redirect, show, teamPath } from '../../served/page.ts'
import { fieldsFor, given, PATH, stateCell, typeWords } from './parts.ts'

const list = get('viewer', PATH, async ({ team, now }, { database }) => {
  const endpoints = await listEndpoints(database, team.id)
  const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
  const labels = ['State', 'Name', 'Events', 'Last success']
  return show({
    title: 'Webhooks',
    lead: 'Your own servers get what becomes of messages and contacts, as it happens.',
    sections: some([
      {
        kind: 'table',
        id: 'webhooks',
        live: true,
        columns: [...labels.map((label) => ({ label })), { label: 'Waiting', number: true }],
        rows: endpoints.map((endpoint) => ({
          cells: [
            stateCell(endpoint),
            text(endpoint.name, { href: teamPath(team, 'webhooks', endpoint.id), detail: endpoint.url }),
            text(typeWords(endpoint.types)),
            time(endpoint.last_success_at, now),
            number(endpoint.backlog),
          ],
        })),
        empty:
          team.role === 'owner'
            ? 'No webhooks yet: add one below. The documentation shows how a server checks what it gets.'
            : 'No webhooks yet. An owner of the team can add one.',
      },
      team.role === 'owner' && {
        kind: 'form',
        title: 'New webhook',
        folded: endpoints.length > 0,
        action: teamPath(team, 'webhooks'),
        method: 'post',
        submit: 'Add a webhook',
        fields: fieldsFor(domains, null),
      },
    ]),
  })
})

const create = act('owner', PATH, async (by, request) => {
  const { secret, id, name } = await addEndpoint(
    { ...by, secrets: by.secrets, allowed: by.webhookNetworks },
    request.team.id,
    given(request.form),
  )
  const words = `The secret of ${name}. Copy it now: it is not shown again.`
  return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
})

export const webhookListPages = [list, create]
