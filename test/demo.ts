/**
 * Creates the demo team of `npm start`, once per database: a verified domain, a key with every scope, a
 * template per channel, a topic with contacts and a draft of a broadcast to them. Its key is stored in a file
 * per database, because the database only has the key's digest.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { principalsByKeys, SCOPES } from '../db/accounts/credentials/credentials.sql.ts'
import { issueKey } from '../db/accounts/credentials/issue.ts'
import { credentialHash } from '../db/accounts/credentials/token.ts'
import { addDomain } from '../db/accounts/domains/add.ts'
import { linkFor } from '../db/accounts/members/members.ts'
import { createTeam } from '../db/accounts/teams/create.ts'
import { createContact } from '../db/audience/contacts/edit.ts'
import { createTopic } from '../db/audience/contacts/topics.ts'
import { saveTemplate } from '../db/content/templates/save.ts'
import { createBroadcast } from '../db/messages/broadcasts/draft.ts'
import { readNew } from '../db/messages/broadcasts/fields.ts'
import { insertNumber, setTeamNumber } from '../db/messages/whatsapp/numbers.sql.ts'
import { sealCredential } from '../db/messages/whatsapp/numbers.ts'
import { createWhatsappTemplate } from '../db/messages/whatsapp/save-template.ts'
import { type At, type Database, openDatabase } from '../db/postgres/pool.ts'
import { openSecrets } from '../db/process/canary.ts'
import type { Secrets } from '../db/process/secrets.ts'
import { DEMO_NUMBER, DEMO_TEMPLATE } from './sandbox/whatsapp-magic.ts'

type Sendable = { key: string; whatsapp: Record<string, unknown> }

/**
 * The output of `npm start`: the key, and bodies for POST /v1/emails and POST /v1/whatsapp/messages.
 * `own_number` is the same for a team with its own WhatsApp number. Null if WhatsApp isn't the sandbox's.
 */
export type Demo = Sendable & { email: Record<string, unknown>; own_number?: Sendable | null }

/** The verified domain of the demo team. */
export const DEMO_DOMAIN = 'demo.test'

const EMAIL = {
  from: `Heliograph Demo <hello@${DEMO_DOMAIN}>`,
  to: ['delivered@example.com'],
  subject: 'Hello from Heliograph',
  html: '<h1>It works</h1><p>This email was accepted, sent and delivered.</p>',
  text: 'It works. This email was accepted, sent and delivered.',
}

/** To a number that the sandbox reports as delivered and read (test/sandbox/whatsapp-magic.ts). */
const WHATSAPP = {
  to: ['+15555550102'],
  parameters: { 'header:1': 'A-17', 'body:1': 'Ana', 'body:2': 'tomorrow', 'url:1': 'orders/17' },
}

/**
 * Creates contacts of a topic, with addresses that the sandbox accepts, and a broadcast that only has to be
 * started.
 */
async function makeNews({ tx, now, secrets }: At & { secrets: Secrets }, teamId: string): Promise<void> {
  const { id: topic } = await createTopic({ tx, now, actor: 'cli' }, teamId, { name: 'News' })
  for (const name of ['Ana', 'Ben', 'Cleo', 'Dan', 'Eve']) {
    const contact = { email: `${name.toLowerCase()}@example.com`, properties: { name }, topic_ids: [topic] }
    await createContact({ tx, now, secrets, actor: 'cli' }, teamId, contact)
  }
  const template = await saveTemplate({ tx, now, actor: 'cli' }, teamId, {
    name: 'News',
    html: '<h1>News for {{name}}</h1><p>Everything is new.</p><p><a href="{{unsubscribe_url}}">Unsubscribe</a></p>',
    text: 'News for {{name}}: everything is new. Unsubscribe: {{unsubscribe_url}}',
  })
  const draft = {
    name: 'First news',
    template_id: template.id,
    from: `Heliograph Demo <news@${DEMO_DOMAIN}>`,
    subject: 'News for {{name}}',
    topic_ids: [topic],
  }
  await createBroadcast({ tx, now, actor: 'cli' }, { team_id: teamId, domain: null }, readNew(draft))
}

const KEY = { name: 'demo', scopes: SCOPES, domain: null, expires_at: null }

/** Stores the template that can be sent. @returns the body of a send with it. */
async function makeSend(by: At & { actor: 'cli' }, teamId: string): Promise<Record<string, unknown>> {
  const { id: template_id } = await createWhatsappTemplate(by, teamId, DEMO_TEMPLATE)
  return { template_id, ...WHATSAPP }
}

/** Creates a second team, which sends from its own number. @returns null if the number exists already. */
async function makeOwnNumber(database: Database, secretKey: string): Promise<Sendable | null> {
  const now = new Date()
  return database.transaction(async (tx) => {
    const by = { tx, now, actor: 'cli' } as const
    const secrets = await openSecrets(tx, { SECRET_KEY: secretKey })
    const { name, phone_number_id, account_id, token } = DEMO_NUMBER
    const access_token = sealCredential(secrets, name, 'access_token', Buffer.from(token))
    const number = {
      name,
      phone_number_id,
      account_id,
      access_token,
      app_secret: null,
      messages_per_second: 1_000,
    }
    if (!(await insertNumber(tx, number, now))) return null
    const team = await createTeam(by, { name: 'Demo with a number of its own', plan: 'pro' })
    await setTeamNumber(tx, team.id, name)
    const { key } = await issueKey(by, team.id, KEY)
    return { key, whatsapp: await makeSend(by, team.id) }
  })
}

async function makeDemo(database: Database, secretKey: string): Promise<Demo> {
  const now = new Date()
  return database.transaction(async (tx) => {
    const team = await createTeam({ tx, now, actor: 'cli' }, { name: 'Demo', plan: 'pro' })
    const secrets = await openSecrets(tx, { SECRET_KEY: secretKey })
    await addDomain({ tx, secrets, now, actor: 'cli' }, team.id, { name: DEMO_DOMAIN, verified: true })
    const { key } = await issueKey({ tx, now, actor: 'cli' }, team.id, KEY)
    await saveTemplate({ tx, now, actor: 'cli' }, team.id, {
      name: 'Welcome',
      html: '<h1>Welcome, {{name}}</h1><p>Good to have you here.</p>',
      text: 'Welcome, {{name}}. Good to have you here.',
    })
    await makeNews({ tx, now, secrets }, team.id)
    return { key, email: EMAIL, whatsapp: await makeSend({ tx, now, actor: 'cli' }, team.id) }
  })
}

/** Whom a key speaks for, if it is still there. */
async function principalOf(database: Database, key: string) {
  const [principal] = await principalsByKeys(database, [credentialHash(key).toString('hex')], new Date())
  return principal
}

/**
 * Returns the demo team of this database: the one in `file` if it still exists, or a new one.
 * @param hasSandbox is true if WhatsApp is the sandbox's. A second team then has its own number there.
 */
export async function demoTeam(
  { url, secretKey, hasSandbox }: { url: string; secretKey: string; hasSandbox: boolean },
  file: string,
): Promise<Demo> {
  const database = await openDatabase(url, { size: 1 })
  try {
    const kept = await readFile(file, 'utf8')
      .then((text) => JSON.parse(text) as Demo)
      .catch(() => null)
    const isThere = kept?.whatsapp && (await principalOf(database, kept.key))
    if (isThere && (kept.own_number || !hasSandbox)) return kept
    const made = isThere ? kept : await makeDemo(database, secretKey)
    if (hasSandbox) made.own_number = await makeOwnNumber(database, secretKey)
    await writeFile(file, `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600 })
    return made
  } finally {
    await database.end()
  }
}

/**
 * Creates a one-time link to the dashboard for an owner of the demo team who is also an operator.
 * @param home the URL of the service.
 */
export async function demoLink(url: string, { key }: Demo, home: string): Promise<string> {
  const database = await openDatabase(url, { size: 1 })
  try {
    const now = new Date()
    const principal = await principalOf(database, key)
    const wish = { email: 'you@example.com', team: principal?.team_id ?? null, operator: true } as const
    const { secret } = await database.transaction((tx) =>
      linkFor({ tx, now, actor: 'npm start' }, { ...wish, role: wish.team === null ? null : 'owner' }),
    )
    return new URL(`/dashboard/login/${secret}`, home).href
  } finally {
    await database.end()
  }
}
