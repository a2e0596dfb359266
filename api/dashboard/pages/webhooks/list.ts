/** Lists the webhooks of a team and adds new ones. */

import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import type { EndpointRow } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import { addEndpoint, listEndpoints } from '../../../../db/messages/webhooks/endpoints.ts'
import { duration, number, text, time } from '../../components/cell.ts'
import { action, buildForm, compact, get } from '../../server/builders.ts'
import { forOthers, redirect, show, teamPath } from '../../server/page.ts'
import { sortableTable } from '../../server/sort.ts'
import { endpointFields, endpointStateCell, fieldsFor, PATH, typesCell } from './parts.ts'

/** Tells for how long all attempts have failed. */
const failingWords = ({ state, failing_since: since }: EndpointRow, now: Date): string | undefined =>
  state === 'disabled' || since === null
    ? undefined
    : `for ${duration((now.getTime() - Date.parse(since)) / 1_000)}`

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
          Status: { ...endpointStateCell(endpoint), detail: failingWords(endpoint, now) },
          Events: typesCell(endpoint.types),
          'Last success': time(endpoint.last_success_at, now),
          'Waiting events': number(endpoint.backlog),
        }),
        {
          id: 'webhooks',
          live: true,
          wrap: ['Name'],
          empty:
            team.role === 'owner'
              ? 'No webhooks yet. Add one. The documentation shows how to verify events.'
              : 'No webhooks yet.',
        },
      ),
      team.role === 'owner' &&
        buildForm(teamPath(team, 'webhooks'), 'Add webhook', {
          title: 'Add a webhook',
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
