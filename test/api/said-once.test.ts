/**
 * What README, DECISIONS and the guides say of endpoints, errors, limits and roles is what the service has: each figure
 * comes from what enforces it, in the words of each document.
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

/** A document, each stretch of white space a single space, so that its lines may break anywhere. */
const flat = (text: string): string => text.replaceAll(/\s+/g, ' ')
const page = await readFile(join(ROOT, 'api/README.md'), 'utf8')
const decisions = flat(await readFile(join(ROOT, 'api/DECISIONS.md'), 'utf8'))
const guides = flat(GUIDES.map(({ html }) => html).join('\n'))
const codes = Object.values(EXPLAINED)
  .flatMap(({ meaning, remedy }) => [meaning, remedy])
  .join(' ')

/** The cells of the table under a heading or a line of bold, without its head. */
function tableUnder(title: string): string[][] {
  const [, after = ''] = page.split(title)
  const [lines = ''] = after.slice(after.indexOf('\n|') + 1).split('\n\n')
  return lines
    .split('\n')
    .slice(2)
    .map((line) => line.slice(2, -2).split(' | '))
}

const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)

/** The endpoints that a cell names: methods before their path, and ends of a path in place of its last part. */
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

t.test('README names every endpoint and no other', async (t) => {
  const named = tableUnder('## Calls').flatMap(([cell = '']) => endpointsIn(cell))
  t.strictSame(named.sort(), V1_ROUTES.map(({ method, path }) => `${method} ${path}`).sort())
})

t.test('README has every code with its status', async (t) => {
  const said = tableUnder('**Errors**').flatMap(([status = '', cell = '']) =>
    quoted(cell.replace('`Retry-After`', '')).map((code) => [code, Number(status)]),
  )
  t.strictSame(said.sort(), CODES.map((code) => [code, STATUS[code]]).sort())
})

/** A limit of the description: of a body's field, or of the strings in a list. */
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
const subject = `${limit('NewEmail.subject', 'minLength')}–${limit('NewEmail.subject', 'maxLength')} characters`
const [emails, messages, contacts] = [
  limit('NewEmailBatch.emails', 'maxItems'),
  limit('NewWhatsappMessageBatch.messages', 'maxItems'),
  limit('ContactUpsertBatch.contacts', 'maxItems'),
]
const [to, numbers] = [limit('NewEmail.to', 'maxItems'), limit('NewWhatsappMessage.to', 'maxItems')]
const [tags, tag] = [limit('NewEmail.tags', 'maxItems'), limit('NewEmail.tags.[]', 'maxLength')]
const variables = limit('NewEmail.variables', 'maxProperties')
const part = `${LARGEST_PART / MIB} MiB each`
const body = `${MAX_BODY_BYTES / MIB} MiB`
const json = `${MAX_JSON_BYTES / 1_024} KiB`
const [strings, values] = [whole(MAX_JSON_STRINGS), whole(MAX_JSON_VALUES)]
const held = (bytes: number, whose: string): string => `${bytes / MIB} MiB of ${whose}`
const { ofOne, unproved, inAll, patience } = BODY_BUDGET
const atOnce = `${held(ofOne, 'one team')}, ${held(unproved, 'all that came without a credential')}, ${held(inAll, 'all')}`

/** What each document says, with the figures that are enforced. */
const SAID: readonly (readonly [name: string, text: string, said: readonly string[]])[] = [
  [
    'README',
    flat(page),
    [
      `| items of a batch | ${emails} emails, ${messages} WhatsApp messages, ${contacts} contacts |`,
      `| recipients | ${to} per email, \`to\`, \`cc\` and \`bcc\` together; ${numbers} per WhatsApp message |`,
      `| attachments | ${limit('NewEmail.attachments', 'maxItems')} per email;`,
      `| body | ${body}; ${strings} strings (keys too), arrays and objects; ${values} values:`,
      `| bodies at once | ${atOnce} in a process; 503 after ${patience / 1_000} s`,
      `| html and text | ${part},`,
      `| subject | ${subject}, one line |`,
      `| tags | ${tags} of ${tag} characters |`,
      `| properties | ${MAX_KEYS} keys of ${LONGEST_KEY} characters,`,
      `| \`topic_ids\` | ${limit('NewContact.topic_ids', 'maxItems')} |`,
      `| variables | ${variables} keys |`,
      `| \`variables\` and \`where\` of a broadcast | ${json} of JSON each |`,
      `(1–${limit('NewEmail.idempotency_key', 'maxLength')} printable ASCII characters`,
    ],
  ],
  [
    'DECISIONS',
    decisions,
    [
      `html and text ${part}; subject ${subject} on one line; ${to} recipients; ${tags} tags of ${tag} characters;`,
      `${MAX_KEYS} properties, keys of ${LONGEST_KEY} and`,
      `${variables} variables; idempotency keys of 1–${limit('NewEmail.idempotency_key', 'maxLength')} printable`,
      `email addresses of ${limit('Unsubscription.email', 'maxLength')}.`,
      `at most ${body}, ${strings} strings, arrays and objects, and ${values} values`,
      `\`variables\` and \`where\` have ${json} of JSON each`,
    ],
  ],
  [
    'guides',
    guides,
    [
      `<td>${emails} emails, ${messages} messages, ${contacts} contacts</td>`,
      `takes up to ${emails} emails, ${messages} WhatsApp messages or ${contacts} contacts`,
      `<td>${to} an email with its copies, ${numbers} a WhatsApp message</td>`,
      `<td>html and text</td><td>${part}</td>`,
      `<td>Variables</td><td>${variables}</td>`,
    ],
  ],
  ['codes', codes, [`${emails} emails, ${messages} WhatsApp messages or ${contacts} contacts each`]],
]

t.test('limits are said as they are enforced, in README, DECISIONS and the guides', async (t) => {
  for (const [name, text, said] of SAID)
    for (const each of said) t.ok(text.includes(each), `${name}: ${each}`)
})

/** What README's table of roles calls the things that pages change: by a page's first word, of messages by its last. */
const ROLE_WORDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  viewer: { integration: 'session tokens' },
  editor: {
    ...{ templates: 'templates of both channels', 'whatsapp-templates': 'templates of both channels' },
    ...{ topics: 'topics', contacts: 'contacts', suppressions: 'suppressions', broadcasts: 'broadcasts' },
    ...{ requeue: 'send messages again', resend: 'send messages again', copy: 'send copies' },
    ...{ cancel: 'cancel and move scheduled', move: 'cancel and move scheduled', integration: 'tests' },
  },
  owner: {
    ...{
      keys: 'keys',
      domains: 'domains',
      webhooks: 'webhooks',
      people: 'people',
      delete: 'delete emails',
      settings: 'settings',
    },
    ...{ contacts: 'export and erase all that is stored of a person' },
  },
}

t.test('README says of each role what its pages may change', async (t) => {
  const said = new Map(tableUnder('### Who may do what').map(([role = '', may = '']) => [role, may]))
  t.strictSame([...said.keys()], [...Object.keys(ROLE_WORDS), 'operator'])
  for (const role of ['viewer', 'editor', 'owner'] as const) {
    const changed = RIGHTS[role]
      .map((route) => /^POST \/teams\/:team\/(.+)$/.exec(route)?.[1]?.split('/') ?? [])
      .flatMap(([first = '', ...others]) =>
        /^(emails|whatsapp)$/.test(first) ? (others.at(-1) ?? []) : first,
      )
    t.strictSame(
      [...new Set(changed)].filter(Boolean).sort(),
      Object.keys(ROLE_WORDS[role] ?? {}).sort(),
      role,
    )
    for (const words of Object.values(ROLE_WORDS[role] ?? {})) t.match(said.get(role), words)
  }
})
