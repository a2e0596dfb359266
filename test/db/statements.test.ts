/**
 * The texts of the main statements as they run (test/db/statements). Reviewers see changes there, because the
 * code builds statements from several modules. See support/statement-texts.ts.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { v7 as uuidv7 } from 'uuid'
import { softFacts } from '../../db/audience/suppressions/addresses.sql.ts'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { endReports, insertReports } from '../../db/delivery/reports/reports.sql.ts'
import { requeueMessages } from '../../db/delivery/requeue.ts'
import { releaseDue } from '../../db/delivery/schedule.sql.ts'
import { lostMessages } from '../../db/delivery/sweep.sql.ts'
import { emptyEmails } from '../../db/maintenance/retention/retention.sql.ts'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import { emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import { removeEmails } from '../../db/messages/emails/remove.ts'
import { emailsFound } from '../../db/messages/emails/search.sql.ts'
import { ROOT } from '../support/sources.ts'
import { compareStatements, readTexts, STATEMENTS, statementsDuring } from '../support/statement-texts.ts'
import { anItem, openStore } from '../support/stored-emails.ts'
import t from '../support/tap.ts'

/** Runs each operation once. */
async function runOperations(): Promise<void> {
  const store = await openStore(t)
  const team_id = await store.team()
  const { database, queue } = store
  const now = new Date()
  await database.transaction((tx) =>
    acceptEmails({ tx, queue, versions: createVersions() }, { team_id, domain: null }, [anItem()]),
  )
  const { id } = await store.email(team_id)
  const ref = { team_id, email_id: id }
  const event = { kind: 'sent', recipient: null, event_key: 'one', occurred_at: now, detail: '' } as const
  const report = { id: uuidv7(), provider: 'smtp', event_key: 'one', body: Buffer.from('a') } as const
  await emailsToDeliver(database, [ref])
  await database.transaction((tx) => applyEmailEvents(tx, [{ ...ref, ...event }], now))
  await insertReports(database, [{ ...report, received_at: now, retry_until: now }])
  await endReports(database, [{ id: report.id, state: 'done', reason: null }])
  await database.transaction((tx) =>
    requeueMessages({ tx, queue, now }, EMAIL, [{ team_id, id }], { by: 'person' }),
  )
  await database.transaction((tx) => removeEmails({ tx }, team_id, [id]))
  await emailsFound(database, { team_id, words: ['hello'], from: now }, { before: id, limit: 30 })
  await releaseDue(database, EMAIL, 500)
  await lostMessages(database, EMAIL, { after: '-infinity', size: 2_000 }, { before: now, limit: 500 })
  const address = { team_id, identity: 'a@example.org', email: 'a@example.org' }
  await softFacts(database, [address], { most: 5, undisputed: now })
  await emptyEmails(database, { after: id, before: id, limit: 1_000 }, 4)
}

t.test('the statements of operations equal their texts', async (t) => {
  compareStatements(t, await statementsDuring(runOperations))
})

t.test('every written text is of a function that exists', async (t) => {
  const files = readdirSync(STATEMENTS, { recursive: true, encoding: 'utf8' })
  const modules = files.filter((file) => file.endsWith('.sql'))
  t.ok(modules.length > 15, `${modules.length} modules`)
  for (const file of modules) {
    const source = ['.sql.ts', '.ts']
      .map((extension) => join(ROOT, 'db', file.replace(/\.sql$/, extension)))
      .find((path) => existsSync(path))
    const code = source ? readFileSync(source, 'utf8') : ''
    const names = [...readTexts(join(STATEMENTS, file)).keys()]
    t.strictSame(
      names.filter((name) => !code.includes(name)),
      [],
      file,
    )
  }
})
