/**
 * README and the guides state endpoints, errors, limits and roles as the code has them. Each number comes
 * from the code that enforces it.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EXPLAINED } from '../../api/docs/codes.ts'
import { GUIDES } from '../../api/docs/guides.ts'
import type { JsonSchema } from '../../api/docs/json-schema.ts'
import { openApi } from '../../api/docs/openapi.ts'
import { BODY_BUDGET } from '../../api/http/body-budget.ts'
import { STATUS } from '../../api/http/errors.ts'
import { MAX_JSON_STRINGS, MAX_JSON_VALUES } from '../../api/http/input.ts'
import { MAX_BODY_BYTES } from '../../api/http/read-body.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import { LONGEST_KEY, MAX_KEYS } from '../../db/audience/contacts/fields.ts'
import { CODES } from '../../db/errors.ts'
import { MAX_JSON_BYTES } from '../../db/messages/broadcasts/fields.ts'
import { LARGEST_PART } from '../../db/validation/strings.ts'
import { RIGHTS } from '../support/page-rights.ts'
import { ROOT } from '../support/sources.ts'
import t from '../support/tap.ts'

/** Replaces each run of white space with a space, so that lines can break anywhere. */
const flat = (text: string): string => text.replaceAll(/\s+/g, ' ')
const page = await readFile(join(ROOT, 'api/README.md'), 'utf8')
const dashboard = await readFile(join(ROOT, 'api/DASHBOARD.md'), 'utf8')
const guides = flat(GUIDES.map(({ markdown }) => markdown).join('\n'))
const codes = Object.values(EXPLAINED)
  .flatMap(({ meaning, remedy }) => [meaning, remedy])
  .join(' ')

/** Returns the cells of the first table under a heading, without its header. */
function tableUnder(title: string, document = page): string[][] {
  const [, after = ''] = document.split(`\n${title}\n`)
  const [lines = ''] = after.slice(after.indexOf('\n|') + 1).split('\n\n')
  return lines
    .split('\n')
    .slice(2)
    .map((line) => line.slice(2, -2).split(' | '))
}

const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)

/**
 * Returns the endpoints in a cell. Methods come before their path, and `/end` replaces the last part of the
 * previous path.
 */
function endpointsIn(cell: string): string[] {
  let [methods, path]: [string[], string] = [[], '']
  return quoted(cell).flatMap((word) => {
    const [, method = '', given = ''] = /^([A-Z]*) ?(\/\S+)?$/.exec(word) ?? []
    if (method !== '') methods = path === '' ? [...methods, method] : [method]
    if (given === '') {
      path = ''
      return []
    }
    path = method === '' ? path.replace(/\/[^/]*$/, given) : given
    return methods.map((each) => `${each} ${path}`)
  })
}

t.test('README lists every endpoint', async (t) => {
  const named = tableUnder('## Calls').flatMap(([cell = '']) => endpointsIn(cell))
  t.strictSame(named.sort(), V1_ROUTES.map(({ method, path }) => `${method} ${path}`).sort())
})

t.test('README lists every code with its status', async (t) => {
  const said = tableUnder('### Errors').flatMap(([status = '', cell = '']) =>
    quoted(cell.replace('`Retry-After`', '')).map((code) => [code, Number(status)]),
  )
  t.strictSame(said.sort(), CODES.map((code) => [code, STATUS[code]]).sort())
})

/** Returns a limit from the description, of a body's field or of the strings in a list. */
function limit(at: string, name: 'maxItems' | 'maxLength' | 'maxProperties' | 'minLength'): string {
  const schemas: Record<string, JsonSchema> = openApi(V1_ROUTES).components.schemas
  const [body = '', ...fields] = at.split('.')
  const field = fields.reduce<JsonSchema>(
    (schema, each) => (each === '[]' ? schema.items : (schema.properties as never)?.[each]) as JsonSchema,
    schemas[body] as JsonSchema,
  )
  return Number(field[name]).toLocaleString('en')
}

const MIB = 1024 ** 2
const whole = (value: number): string => value.toLocaleString('en')
const [emails, messages, contacts] = [
  limit('NewEmailBatch.emails', 'maxItems'),
  limit('NewWhatsappMessageBatch.messages', 'maxItems'),
  limit('ContactUpsertBatch.contacts', 'maxItems'),
]
const [to, numbers] = [limit('NewEmail.to', 'maxItems'), limit('NewWhatsappMessage.to', 'maxItems')]
const [tags, tag] = [limit('NewEmail.tags', 'maxItems'), limit('NewEmail.tags.[]', 'maxLength')]
const variables = limit('NewEmail.variables', 'maxProperties')
const [shortest, longest] = [limit('NewEmail.subject', 'minLength'), limit('NewEmail.subject', 'maxLength')]
const mib = (bytes: number): string => `${bytes / MIB} MiB`

/** The enforced limits, by row of README's table. */
const LIMITS: Readonly<Record<string, readonly string[]>> = {
  'items of a batch': [`${emails} emails`, `${messages} WhatsApp messages`, `${contacts} contacts`],
  recipients: [`${to} per email`, `${numbers} per WhatsApp call`],
  attachments: [`${limit('NewEmail.attachments', 'maxItems')} per email`],
  body: [mib(MAX_BODY_BYTES), `${whole(MAX_JSON_STRINGS)} strings`, `${whole(MAX_JSON_VALUES)} values`],
  'bodies in memory, per process': [
    ...[BODY_BUDGET.perOwner, BODY_BUDGET.unauthenticated, BODY_BUDGET.total].map(mib),
    `${BODY_BUDGET.patience / 1_000} s`,
  ],
  'html and text': [mib(LARGEST_PART)],
  subject: [`${shortest}–${longest} characters`],
  tags: [`${tags} of ${tag} characters`],
  properties: [`${MAX_KEYS} keys of ${LONGEST_KEY} characters`],
  '`topic_ids`': [limit('NewContact.topic_ids', 'maxItems')],
  variables: [`${variables} keys`],
  '`variables` and `where` of a broadcast': [`${MAX_JSON_BYTES / 1_024} KiB`],
}

t.test('README lists the enforced limits', async (t) => {
  const rows = new Map(tableUnder('## Limits').map(([what = '', is = '']) => [what, is]))
  for (const [what, values] of Object.entries(LIMITS))
    for (const value of values) t.ok(rows.get(what)?.includes(value), `${what}: ${value}`)
  t.ok(flat(page).includes(`1–${limit('NewEmail.idempotency_key', 'maxLength')} printable ASCII characters`))
})

/** The statements about enforced limits in the guides and the explanations of codes. */
const SAID: readonly (readonly [name: string, text: string, said: readonly string[]])[] = [
  [
    'guides',
    guides,
    [
      `| ${emails} emails, ${messages} messages, ${contacts} contacts |`,
      `up to ${emails} emails, ${messages} WhatsApp messages or ${contacts} contacts`,
      `| ${to} per email including copies, ${numbers} per WhatsApp call |`,
      `| \`html\` and \`text\` | ${mib(LARGEST_PART)} each |`,
      `| Variables | ${variables} |`,
    ],
  ],
  ['codes', codes, [`${emails} emails, ${messages} WhatsApp messages or ${contacts} contacts each`]],
]

t.test('guides and codes state the enforced limits', async (t) => {
  for (const [name, text, said] of SAID)
    for (const each of said) t.ok(text.includes(each), `${name}: ${each}`)
})

/** The terms in README's table of roles, by the first part of a page's path, or the last for messages. */
const ROLE_WORDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  viewer: { integration: 'session tokens' },
  editor: {
    ...{ templates: 'templates of both channels', 'whatsapp-templates': 'templates of both channels' },
    ...{ topics: 'topics', contacts: 'contacts', suppressions: 'suppressions', broadcasts: 'broadcasts' },
    ...{ 'whatsapp-opt-outs': 'WhatsApp opt-outs', 'background-jobs': 'stop background jobs' },
    ...{ requeue: 'send messages again', resend: 'send messages again', copy: 'send copies' },
    ...{ cancel: 'cancel and move scheduled', move: 'cancel and move scheduled', integration: 'tests' },
  },
  owner: {
    ...{
      keys: 'keys',
      domains: 'domains',
      webhooks: 'webhooks',
      people: 'members',
      delete: 'delete emails',
      settings: 'settings',
      'resume-bulk': "paused for the team's bounces or complaints",
    },
    ...{ contacts: "export and erase a contact's personal data" },
  },
}

t.test('README lists what each role can change', async (t) => {
  const said = new Map(
    tableUnder('## Who may do what', dashboard).map(([role = '', may = '']) => [role, may]),
  )
  t.strictSame([...said.keys()], [...Object.keys(ROLE_WORDS), 'operator'])
  for (const role of ['viewer', 'editor', 'owner'] as const) {
    const changed = RIGHTS[role]
      .map((route) => /^POST \/teams\/:team\/(.+)$/.exec(route)?.[1]?.split('/') ?? [])
      .flatMap(([first = '', ...others]) =>
        /^(emails|whatsapp)$/.test(first) ? (others.at(-1) ?? []) : first,
      )
    const marked = [...new Set(changed)].filter(Boolean).sort()
    t.strictSame(marked, Object.keys(ROLE_WORDS[role] ?? {}).sort(), role)
    for (const words of Object.values(ROLE_WORDS[role] ?? {})) t.match(said.get(role), words)
  }
})
