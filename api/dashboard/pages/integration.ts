/** Shows how to call the API: example requests with the team's domain and templates, and the missing set-up steps. */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { templatesOfTeam } from '../../../db/content/templates/templates.sql.ts'
import { whatsappTemplatesOfTeam } from '../../../db/messages/whatsapp/templates.sql.ts'
import { UNSUBSCRIBE_SLOT } from '../../../db/validation/slots.ts'
import { writePost } from '../../docs/samples.ts'
import { TEST_ADDRESSES, TEST_NUMBERS } from '../../docs/test-recipients.ts'
import { type Cell, headed, status, text } from '../components/cell.ts'
import type { Link, Section } from '../components/section.ts'
import { buildTable, compact, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type PageTeam, show, type TeamRequest, teamPath } from '../server/page.ts'
import { setUpSteps } from './first-steps.ts'
import { type Language, languageLinks, readLanguage } from './request-language.ts'
import { testEmailForm, testEmailPages } from './test-email.ts'
import { isSendable, sampleRequest } from './whatsapp-templates.ts'

const TABS = { '': 'Requests', recipients: 'Test recipients', tokens: 'Session tokens' } as const

/** Builds the tabs of Integration. Each is a page. */
export const integrationTabs = (team: PageTeam, current: keyof typeof TABS): Section => ({
  kind: 'tabs',
  links: Object.entries(TABS).map(([path, label]) => ({
    href: path === '' ? teamPath(team, 'integration') : teamPath(team, 'integration', path),
    label,
    current: path === current,
  })),
})

const DOCUMENTATION: Link = { href: '/docs', label: 'API documentation', outside: true }

/** Returns the domain for the examples, a verified one if possible. */
async function sendingDomain({ team }: TeamRequest, { database }: PageDeps): Promise<string> {
  const domains = await domainsOfTeam(database, team.id)
  return (domains.find(({ status }) => status === 'verified') ?? domains[0])?.name ?? 'example.com'
}

const settings = ({ home, team }: TeamRequest): Section => ({
  kind: 'code',
  title: 'Set the key',
  note:
    team.role === 'owner'
      ? 'Replace hg_… with your key.'
      : 'Replace hg_… with a key from an owner of the team.',
  next: team.role === 'owner' ? { href: teamPath(team, 'keys'), label: 'Create a key' } : undefined,
  code: `export HELIOGRAPH_KEY=hg_…\nexport HELIOGRAPH_URL=${home.origin}`,
})

/** Returns a sample value. The unsubscribe link must be a URL, because it can be in a header. */
const buildSample = (slot: string): string =>
  slot === UNSUBSCRIBE_SLOT ? 'https://example.com/unsubscribe' : '…'

async function examples(request: TeamRequest, deps: PageDeps, language: Language): Promise<Section[]> {
  const { team } = request
  const { database } = deps
  const code = (path: string, body: Record<string, unknown>) => writePost(language, path, body)
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
      note: 'With an idempotency_key, a repeated call doesn’t send anything twice.',
      code: code('/v1/emails', { ...email, html: '<p>Hello</p>', idempotency_key: 'order-17' }),
    },
  ]
  if (template) {
    const variables = Object.fromEntries(template.slots.map((slot) => [slot, buildSample(slot)]))
    const body = { ...email, template_id: template.id, variables }
    const title = `Send the template ${template.name}`
    sections.push({ kind: 'code', title, fold: true, code: code('/v1/emails', body) })
  }
  const messages = await whatsappTemplatesOfTeam(database, team.id)
  const message = messages.find(isSendable)
  if (message) {
    const title = `Send the WhatsApp template ${message.name}`
    sections.push({ kind: 'code', title, fold: true, code: sampleRequest(message, language) })
  }
  const contact = { email: 'someone@example.com', properties: { name: 'Ana' } }
  return [
    ...sections,
    { kind: 'code', title: 'Add a contact', fold: true, code: code('/v1/contacts', contact) },
  ]
}

/** Lists the steps that are missing before a first call works. */
async function lacking(request: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const steps = await setUpSteps(request, deps)
  if (steps.every(({ done }) => done)) return []
  const note = 'Until these are done, the requests below are rejected. Owners of the team can do them.'
  return [{ kind: 'steps', id: 'lacking', title: 'Before your first call', note, steps }]
}

/** Lists the test recipients of a channel. Only a test team's are complete and can be copied. */
const testRecipients = (
  all: typeof TEST_ADDRESSES,
  {
    called,
    title,
    note,
    complete,
  }: { called: string; title: string; note?: string | undefined; complete(to: string): Cell },
): Section =>
  buildTable(
    all,
    ({ to, becomes, ends, shown, others }) => [
      [called, complete(to)],
      // Without a color, because nothing has happened.
      [
        'Status',
        status(ends, {
          tone: 'plain',
          detail: shown && `(shown as ${shown})`,
          usual: !shown && becomes.toLowerCase().includes(ends),
        }),
      ],
      [
        'What happens',
        text(`${headed(becomes)}.`, {
          detail: others ? 'All other recipients have the same result.' : undefined,
        }),
      ],
    ],
    { title, note, grow: [], wrap: ['What happens'], empty: '' },
  )

const liveWords = (isOperator: boolean): string =>
  `These only work in a test team, which ${isOperator ? 'you' : 'an operator'} can create. This team delivers all messages.`
const ANY_DOMAIN = 'Any domain works, not only example.com.'
const TEST =
  'Nothing is delivered. The part before the @, or the last four digits of a number, determines the result.'

const page = get('viewer', '/teams/:team/integration', async (request, deps) => {
  const { team } = request
  return show({
    title: 'Integration',
    lead: `The API is at ${request.home.origin}/v1. Calls need an API key of this team.`,
    actions: { links: [DOCUMENTATION] },
    sections: [
      ...(await testEmailForm(request, deps.database)),
      integrationTabs(team, ''),
      ...(await lacking(request, deps)),
      { kind: 'chips', chips: languageLinks(request) },
      settings(request),
      ...(await examples(request, deps, readLanguage(request))),
    ],
  })
})

const recipients = get('viewer', '/teams/:team/integration/recipients', async (request, { database }) => {
  const { team, person } = request
  const { test } = team
  return show({
    title: 'Test recipients',
    lead: test ? TEST : liveWords(person.operator),
    actions: {
      links: compact([
        !test && person.operator && { href: '/operator/teams', label: 'Create a test team', main: true },
        { href: '/docs#test-teams', label: 'About test teams', outside: true },
      ]),
    },
    sections: [
      ...(test ? await testEmailForm(request, database, { to: 'delivered@example.com' }) : []),
      integrationTabs(team, 'recipients'),
      testRecipients(TEST_ADDRESSES, {
        ...{ called: 'Email address', title: 'Email addresses', note: test ? ANY_DOMAIN : undefined },
        complete: (to) =>
          test
            ? text(`${to}@example.com`, { code: true, copy: true })
            : text(`${to}@`, { code: true, detail: 'any domain' }),
      }),
      testRecipients(TEST_NUMBERS, {
        ...{ called: 'WhatsApp number', title: 'WhatsApp numbers' },
        complete: (to) =>
          test
            ? text(`+1555555${to}`, { code: true, copy: true })
            : text(to, { code: true, detail: 'at the end of any number' }),
      }),
    ],
  })
})

export const integrationPages = [page, recipients, ...testEmailPages]
