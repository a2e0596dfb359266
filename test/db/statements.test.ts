/**
 * The texts of the main statements as they run (test/db/statements). Reviewers see changes there, because the
 * code builds statements from several modules. UPDATE_STATEMENTS=1 writes the files.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
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
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { openPool } from '../support/pool.ts'
import { linesOf } from '../support/sql-lines.ts'
import { anItem, openStore } from '../support/stored-emails.ts'
import t from '../support/tap.ts'

const PLACE = join(import.meta.dirname, 'statements')

/** The statements of each operation, with the names of their files. */
const KEPT = {
  accept: {
    'insert-emails': /insert into accepted_emails/,
    'email-references': /^select d\.team_id, case d\.status/,
    'lock-account': /from allowances where team_id = \$1 for update/,
  },
  read: { 'emails-to-deliver': /from emails where team_id = ref_team/ },
  record: {
    'lock-emails': /from email_states s join accepted_emails/,
    'insert-email-events': /insert into email_events/,
    'change-emails': /update email_states/,
  },
  report: { 'insert-reports': /insert into reports/, 'end-reports': /update reports/ },
  requeue: { 'requeue-emails': /update email_states/ },
  remove: {
    'delete-emails': /delete from accepted_emails/,
    'delete-email-events': /delete from email_events/,
  },
  search: { 'search-emails': /from emails e where/ },
  release: { 'release-due': /with recursive clock/ },
  sweep: { 'lost-messages': /lost as \(/ },
  judge: { 'soft-bounce-facts': /suppressed_addresses/ },
  empty: { 'empty-emails': /update accepted_emails/ },
}

/** Runs each operation once. @returns the statements that the server received, by operation. */
async function textsOfOperations() {
  const store = await openStore(t)
  const team_id = await store.team()
  const proxy = await startDatabaseProxy(t, store.url)
  const database = await openPool(t, proxy.url, { size: 1 })
  const { queue } = store
  const now = new Date()
  const accept = () =>
    database.transaction((tx) =>
      acceptEmails({ tx, queue, versions: createVersions() }, { team_id, domain: null }, [anItem()]),
    )
  const accepted = await proxy.textsDuring(accept)
  const { id } = await store.email(team_id)
  const ref = { team_id, email_id: id }
  const event = { kind: 'deferred', recipient: null, event_key: 'one', occurred_at: now, detail: '' } as const
  const report = { id: uuidv7(), provider: 'smtp', event_key: 'one', body: Buffer.from('a') } as const
  return {
    accept: accepted,
    read: await proxy.textsDuring(() => emailsToDeliver(database, [ref])),
    record: await proxy.textsDuring(() =>
      database.transaction((tx) => applyEmailEvents(tx, [{ ...ref, ...event }], now)),
    ),
    report: await proxy.textsDuring(async () => {
      await insertReports(database, [{ ...report, received_at: now, retry_until: now }])
      await endReports(database, [{ id: report.id, state: 'done', reason: null }])
    }),
    requeue: await proxy.textsDuring(() =>
      database.transaction((tx) =>
        requeueMessages({ tx, queue, now }, EMAIL, [{ team_id, id }], { by: 'person' }),
      ),
    ),
    remove: await proxy.textsDuring(() => database.transaction((tx) => removeEmails({ tx }, team_id, [id]))),
    search: await proxy.textsDuring(() =>
      emailsFound(database, { team_id, words: ['hello'], from: now }, { before: id, limit: 30 }),
    ),
    release: await proxy.textsDuring(() => releaseDue(database, EMAIL, 500)),
    sweep: await proxy.textsDuring(() =>
      lostMessages(database, EMAIL, { after: '-infinity', size: 2_000 }, { before: now, limit: 500 }),
    ),
    judge: await proxy.textsDuring(() =>
      softFacts(database, [{ team_id, identity: 'a@example.org', email: 'a@example.org' }], {
        most: 5,
        undisputed: now,
      }),
    ),
    empty: await proxy.textsDuring(() => emptyEmails(database, { after: id, before: id, limit: 1_000 }, 4)),
  }
}

t.test('the main statements equal their files', async (t) => {
  const texts = await textsOfOperations()
  const files: string[] = []
  for (const [operation, kept] of Object.entries(KEPT) as [keyof typeof KEPT, Record<string, RegExp>][])
    for (const [name, pattern] of Object.entries(kept)) {
      const found = texts[operation].map(linesOf).filter((text) => pattern.test(text.replaceAll(/\s+/g, ' ')))
      t.equal(new Set(found).size, 1, `${name} is one of the statements`)
      const file = join(PLACE, `${name}.sql`)
      files.push(`${name}.sql`)
      if (process.env.UPDATE_STATEMENTS) writeFileSync(file, found[0] ?? '')
      t.equal(found[0], readFileSync(file, 'utf8'), `${name}, or write it with UPDATE_STATEMENTS=1`)
    }
  t.strictSame(readdirSync(PLACE).sort(), files.sort())
})
