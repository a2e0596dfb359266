/** Stores emails as the API does, for tests of the domain and the CLI. */
import type { Test } from 'tap'
import { createTeam } from '../../db/accounts/teams/create.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import type { EmailItem, EmailSender } from '../../db/messages/emails/call.ts'
import type { EmailRow } from '../../db/messages/emails/emails.sql.ts'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { createProducer, type Producer } from '../../db/queue/producer.ts'
import { stopClock } from './clock.ts'
import { testDatabase } from './database.ts'
import { verifiedDomain } from './domain.ts'
import { SECRET_KEY } from './environment.ts'

type Changes = Partial<EmailItem> & Pick<EmailSender, 'internal'>

export type Store = {
  url: string
  database: Database
  queue: Producer
  /** Creates a team with the verified domain `demo.test`. */
  team(plan?: string, at?: Date): Promise<string>
  /** Stores one email. With `at`, the database's clock is set to that. @throws Error if not stored. */
  email(teamId: string, at?: Date, changes?: Changes): Promise<EmailRow>
}

const ITEM: EmailItem = {
  path: '',
  from: { name: null, address: 'hello@demo.test', domain: 'demo.test' },
  to: ['someone@example.com'],
  subject: 'Hello',
  html: '<p>Hello</p>',
  template_id: null,
  variables: null,
  text: null,
  headers: null,
  reply_to: '',
  tags: [],
  idempotency_key: null,
}

/** Builds a valid item, with a test's changes. */
export const anItem = (changes: Partial<EmailItem> = {}): EmailItem => ({ ...ITEM, ...changes })

/** Opens a database for a test, with functions that store teams and emails. Everything ends with the test. */
export async function openStore(t: Test, make: typeof testDatabase = testDatabase): Promise<Store> {
  const { url } = await make(t)
  const database = await openDatabase(url, { size: 4 })
  const queue = createProducer()
  t.teardown(async () => {
    await database.end()
  })
  return {
    url,
    database,
    queue,
    team: async (plan = 'free', at) => {
      if (at) await stopClock(database, at)
      return database.transaction(async (tx) => {
        const now = new Date()
        const { id } = await createTeam({ tx, now: new Date(), actor: null }, { name: 'Acme', plan })
        await verifiedDomain({ tx, secrets: createSecrets(SECRET_KEY), now }, id, 'demo.test')
        return id
      })
    },
    email: async (teamId, at, { internal, ...changes } = {}) => {
      if (at) await stopClock(database, at)
      return database.transaction(async (tx) => {
        const sender = { team_id: teamId, domain: null, ...(internal ? { internal } : {}) }
        const [outcome] = await acceptEmails({ tx, queue, versions: createVersions() }, sender, [
          anItem(changes),
        ])
        if (outcome?.kind === 'stored') return outcome.row
        throw new Error(outcome?.kind === 'refused' ? outcome.refusal.message : 'a replay')
      })
    },
  }
}
