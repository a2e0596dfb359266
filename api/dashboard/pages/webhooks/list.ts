/** Lists the webhooks of a team and adds new ones. */

import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import { addEndpoint, listEndpoints } from '../../../../db/messages/webhooks/endpoints.ts'
import { number, text, time } from '../../components/cell.ts'
import { action, buildForm, compact, get } from '../../server/builders.ts'
import { forOthers, redirect, show, teamPath } from '../../server/page.ts'
import { sortableTable } from '../../server/sort.ts'
import { endpointFields, endpointStateCell, fieldsFor, PATH, typesCell } from './parts.ts'

const list = get('viewer', PATH, async (request, { database }) => {
  const { team, now } = request
  const endpoints = await listEndpoints(database, team.id)
  const domains = (await domainsOfTeam(database, team.id)).map(({ name }) => name)
  return show({
    title: 'Webhooks',
    lead: `Events of the team, sent to your own servers as they happen.${forOthers(team, 'add webhooks')}`,
    actions: {
      links: [
        { href: '/docs#webhooks', label: 'How to receive them', outside: true, menu: true },
        { href: teamPath(team, 'webhooks', 'events'), label: 'Event log' },
      ],
    },
    sections: compact([
      sortableTable(
        request,
        endpoints,
        (endpoint) => ({
          Name: text(endpoint.name, { href: teamPath(team, 'webhooks', endpoint.id), detail: endpoint.url }),
          State: endpointStateCell(endpoint),
          Events: typesCell(endpoint.types),
          'Last success': time(endpoint.last_success_at, now),
          Waiting: number(endpoint.backlog),
        }),
        {
          id: 'webhooks',
          live: true,
          empty:
            team.role === 'owner'
              ? 'No webhooks yet. Add one. The documentation shows how to verify messages.'
              : 'No webhooks yet.',
        },
      ),
      team.role === 'owner' &&
        buildForm(teamPath(team, 'webhooks'), 'Add a webhook', {
          title: 'New webhook',
          folded: true,
          fields: fieldsFor(domains, null),
        }),
    ]),
  })
})

const create = action('owner', PATH, async (by, request) => {
  const { secret, id, name } = await addEndpoint(
    { ...by, allowed: by.webhookNetworks },
    request.team.id,
    endpointFields(request.form),
  )
  const words = `This is the secret of ${name}. Copy it now. It isn’t shown again.`
  return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
})

export const webhookListPages = [list, create]
