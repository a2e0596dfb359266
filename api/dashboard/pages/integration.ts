/**
 * How to call the API as this team, ready to paste with its own domain and template, and what it lacks for that;
 * session tokens for its people; and what was refused lately.
 */

import { endToken, makeToken, tokensFor } from '../../../db/accounts/credentials/tokens.ts'
import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { type RefusedCall, refusedCalls } from '../../../db/accounts/rejections/refusals.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { UNSUBSCRIBE_SLOT } from '../../../db/validation/slots.ts'
import { TEST_ADDRESSES, TEST_NUMBERS } from '../../docs/test-recipients.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { act, buttonCell, compact, get, press, tableOf } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type PageTeam, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { isFrozen } from '../server/read-only.ts'
import { setUpSteps } from './first-steps.ts'
import { testEmailForm, testEmailPages } from './test-email.ts'

function curl({ home }: TeamRequest, path: string, body: unknown): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`).replaceAll('\n', '\n  ')
  return [
    `curl ${home.origin}${path} \\`,
    `  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${json}'`,
  ].join('\n')
}

/** The domain that examples are from: a verified one, if there is any. */
async function sendingDomain({ team }: TeamRequest, { database }: PageDeps): Promise<string> {
  const domains = await domainsOfTeam(database, team.id)
  return (domains.find(({ status }) => status === 'verified') ?? domains[0])?.name ?? 'example.com'
}

const KEY: Section = {
  kind: 'code',
  title: 'Set the key',
  note: 'In the shell that calls, with the key that was shown when it was created in place of the dots.',
  code: 'export HELIOGRAPH_KEY=hg_…',
}

/** What stands for the value of a slot: where the link goes into a header, a send without an address is refused. */
const sampleOf = (slot: string): string =>
  slot === UNSUBSCRIBE_SLOT ? 'https://example.com/unsubscribe' : '…'

async function examples(request: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const { team } = request
  const { database } = deps
  const [template] = await templatesOfTeam(database, team.id)
  const email = {
    from: `Your name <hello@${await sendingDomain(request, deps)}>`,
    to: [team.test ? 'delivered@example.com' : 'someone@example.com'],
    subject: 'Hello',
  }
  const sections: Section[] = [
    {
      kind: 'code',
      title: 'Send an email',
      note: 'With an idempotency_key a repeated call sends nothing twice.',
      code: curl(request, '/v1/emails', { ...email, html: '<p>Hello</p>', idempotency_key: 'order-17' }),
    },
  ]
  if (template) {
    const variables = Object.fromEntries(template.slots.map((slot) => [slot, sampleOf(slot)]))
    const code = curl(request, '/v1/emails', { ...email, template_id: template.id, variables })
    sections.push({ kind: 'code', title: `Send the template ${template.name}`, code })
  }
  const messages = await whatsappTemplatesOfTeam(database, team.id)
  const message = messages.find(({ status, unsupported }) => status === 'approved' && unsupported === null)
  if (message) {
    const parameters = Object.fromEntries(message.slots.map((slot) => [slot, '…']))
    const body = { template_id: message.id, to: ['+15555550101'], parameters }
    const code = curl(request, '/v1/whatsapp/messages', body)
    sections.push({ kind: 'code', title: `Send the WhatsApp template ${message.name}`, code })
  }
  const contact = { email: 'someone@example.com', properties: { name: 'Ana' } }
  return [...sections, { kind: 'code', title: 'Add a contact', code: curl(request, '/v1/contacts', contact) }]
}

/** What a first call lacks, with where to get it; nothing once it can work. */
async function lacking(request: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const steps = await setUpSteps(request, deps)
  if (steps.every(({ done }) => done)) return []
  const note = 'Until these are done, the requests below are refused. Owners of the team do them.'
  return [{ kind: 'steps', id: 'lacking', title: 'Before your first call', note, steps }]
}

/** To whom a test team sends to try things out; of a live team, where that can be done. */
function testRecipients({ test }: PageTeam): Section {
  const all = [
    ...TEST_ADDRESSES.map(({ to, ...rest }) => ({ ...rest, to: `${to}@example.com` })),
    ...TEST_NUMBERS.map(({ to, ...rest }) => ({ ...rest, to: `+1555555${to}` })),
  ]
  if (test)
    return tableOf(
      all,
      ({ to, becomes, others }) => ({
        Recipient: text(to, { code: true, copy: true }),
        'What becomes of it': text(becomes, { detail: others ? 'and anybody else' : undefined }),
      }),
      {
        id: 'recipients',
        title: 'Test recipients',
        note: 'At any domain, and any number with these last digits.',
        empty: '',
      },
    )
  const names = TEST_ADDRESSES.map(({ to }) => `${to}@`).join(', ')
  return {
    kind: 'text',
    id: 'recipients',
    title: 'Test recipients',
    paragraphs: [
      `What this team sends is delivered, to whomever it is addressed. In a test team nothing is, and recipients behave as they are called: ${names}. An operator of this service creates one.`,
    ],
  }
}

function refused(calls: readonly RefusedCall[], now: Date): Section {
  return tableOf(
    calls,
    ({ created_at, method, route, code, message, key_prefix, http_request_id }) => ({
      When: time(created_at, now),
      Call: text(`${method} ${route}`, { code: true }),
      Answer: text(code, { code: true, detail: message }),
      Key: text(key_prefix === null ? 'a session token' : `${key_prefix}…`, { code: key_prefix !== null }),
      // Its end: ids of one minute begin alike.
      'Request ID': text(`…${http_request_id.slice(-8)}`, {
        code: true,
        tip: http_request_id,
        copy: true,
        copied: http_request_id,
      }),
    }),
    {
      id: 'refused',
      live: true,
      title: 'Calls that were refused',
      note: 'The last twenty. What was sent is not kept.',
      wrap: ['Call', 'Answer'],
      empty: 'No call of this team was refused.',
    },
  )
}

type Token = Awaited<ReturnType<typeof tokensFor>>[number]

const tokenPath = ({ team }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'integration', 'tokens', ...rest)

const revokeButton = (request: TeamRequest, { id }: Token): Cell =>
  buttonCell(tokenPath(request, id, 'revoke'), 'Revoke token', { tone: 'danger' })

/** What a token may do, as far as its maker still may. */
const mayOf = ({ role }: Token): string => (role === 'viewer' ? 'read' : 'send, unsubscribe')

/** Session tokens, and a way to make one for oneself. */
function tokens(request: TeamRequest, rows: readonly Token[]): Section[] {
  const { team, now } = request
  const frozen = isFrozen(team, request.person)
  return compact([
    tableOf(
      rows,
      (row) => ({
        State: status(row.revoked_at === null ? 'active' : 'revoked'),
        Person: text(row.user ?? 'the team', { detail: row.role ?? 'created by an operator' }),
        May: text(mayOf(row)),
        Created: time(row.created_at, now),
        Expires: time(row.expires_at, now),
        Action: !frozen && (row.revoked_at === null ? revokeButton(request, row) : text('')),
      }),
      {
        id: 'tokens',
        title: 'Session tokens',
        note: 'For single sends and the marketing unsubscribe, in place of a key: as a person of the team, for 30 days at most.',
        empty: 'No session token yet.',
      },
    ),
    team.member && {
      kind: 'actions',
      forms: [press(tokenPath(request), 'Create a session token', { tone: 'quiet' })],
    },
  ])
}

const make = act('viewer', '/teams/:team/integration/tokens', async (by, { team, person }) => {
  const { token } = await makeToken(by, team.id, { user_id: person.user_id, role: team.role })
  const words = 'Your session token, good for 30 days. Copy it now: it is not shown again.'
  return redirect(teamPath(team, 'integration'), { tone: 'good', text: words, secret: token })
})

const revoke = act(
  'viewer',
  '/teams/:team/integration/tokens/:id/revoke',
  async (by, { team, params, person }) => {
    await endToken(by, team.id, params.id, { user_id: person.user_id, role: team.role })
    return redirect(teamPath(team, 'integration'), 'The session token is revoked.')
  },
  async ({ team, params, person, now }, { database }) => {
    const who = { user_id: person.user_id, role: team.sees }
    const token = (await tokensFor({ tx: database, now }, team.id, who)).find(({ id }) => id === params.id)
    if (!token) throw new RequestError('not_found', "This session token doesn't exist.")
    return {
      question: `Revoke this session token of ${token.user ?? 'the team'}? Whatever uses it is rejected at once.`,
      answer: 'Revoke token',
      tone: 'danger',
    }
  },
)

const page = get('viewer', '/teams/:team/integration', async (request, deps) => {
  const { team, person, now } = request
  const { database } = deps
  return show({
    title: 'Integration',
    lead: `The API is at ${request.home.origin}/v1. Calls need an API key of this team.`,
    actions: { links: [{ href: '/docs', label: 'API documentation', outside: true }] },
    sections: [
      ...(await testEmailForm(request, database)),
      ...(await lacking(request, deps)),
      KEY,
      ...(await examples(request, deps)),
      testRecipients(team),
      ...tokens(
        request,
        await tokensFor({ tx: database, now }, team.id, { user_id: person.user_id, role: team.sees }),
      ),
      refused(await refusedCalls(database, team.id), now),
    ],
  })
})

export const integrationPages = [page, make, revoke, ...testEmailPages]
