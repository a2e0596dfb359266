/** How to call the API as this team, ready to paste with its own domain and template; and what was refused lately. */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { type RefusedCall, refusedCalls } from '../../../db/accounts/refusals/refusals.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { templatesOfTeam as whatsappTemplates } from '../../../db/messages/whatsapp/templates.sql.ts'
import { text, time } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import { get, tableOf } from '../served/made.ts'
import { show, type TeamRequest } from '../served/page.ts'

/** A call for a shell. */
function curl({ home }: TeamRequest, path: string, body: unknown): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`).replaceAll('\n', '\n  ')
  return [
    `curl ${home.origin}${path} \\`,
    `  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join('\n')
}

async function examples(
  request: TeamRequest,
  database: Parameters<typeof domainsOfTeam>[0],
): Promise<Section[]> {
  const domains = await domainsOfTeam(database, request.team.id)
  const domain = (domains.find(({ status }) => status === 'verified') ?? domains[0])?.name ?? 'example.com'
  const [template] = await templatesOfTeam(database, request.team.id)
  const email = { from: `Your name <hello@${domain}>`, to: ['someone@example.com'], subject: 'Hello' }
  const sections: Section[] = [
    {
      kind: 'code',
      title: 'Send an email',
      note: 'With an idempotency_key a repeated call sends nothing twice.',
      code: curl(request, '/v1/emails', { ...email, html: '<p>Hello</p>', idempotency_key: 'order-17' }),
    },
  ]
  if (template) {
    const variables = Object.fromEntries(template.slots.map((slot) => [slot, '…']))
    const code = curl(request, '/v1/emails', { ...email, template_id: template.id, variables })
    sections.push({ kind: 'code', title: `Send the template ${template.name}`, code })
  }
  const [message] = await whatsappTemplates(database, request.team.id)
  if (message) {
    const parameters = Object.fromEntries(message.slots.map((slot) => [slot, '…']))
    const body = { template_id: message.id, to: ['+15555550100'], parameters }
    const code = curl(request, '/v1/whatsapp/messages', body)
    sections.push({ kind: 'code', title: `Send the WhatsApp template ${message.name}`, code })
  }
  const contact = { email: 'someone@example.com', properties: { name: 'Ana' } }
  return [...sections, { kind: 'code', title: 'Add a contact', code: curl(request, '/v1/contacts', contact) }]
}

/** What the API refused lately. */
function refused(calls: readonly RefusedCall[], now: Date): Section {
  return tableOf(
    calls,
    ({ created_at, method, route, code, message, key_prefix, request_id }) => ({
      When: time(created_at, now),
      Call: text(`${method} ${route}`, { code: true }),
      Said: text(code, { code: true, detail: message }),
      Key: text(key_prefix === null ? 'a session token' : `${key_prefix}…`, { code: key_prefix !== null }),
      'Request id': text(request_id, { code: true }),
    }),
    {
      id: 'refused',
      live: true,
      title: 'Calls that were refused',
      note: 'The last twenty. What was sent is not kept.',
      empty: 'No call of this team was refused.',
    },
  )
}

const page = get('viewer', '/teams/:team/integration', async (request, { database }) => {
  return show({
    title: 'Integration',
    lead: `The API is at ${request.home.origin}/v1. Calls carry a key of this team.`,
    sections: [
      ...(await examples(request, database)),
      refused(await refusedCalls(database, request.team.id), request.now),
    ],
  })
})

export const integrationPages = [page]
