/**
 * The texts of all statements are in test/db/statements, because the code builds them from several modules.
 * Reviewers see changes there. To write them: UPDATE_STATEMENTS=1. The statements of each message are built by
 * their operations, all others by calls with samples (support/sample-calls.ts). PostgreSQL prepares each of
 * them, so each text is valid.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { storeNextKey } from '../../db/accounts/domains/domains.sql.ts'
import { movePass } from '../../db/accounts/teams/resumed.sql.ts'
import { addSlice } from '../../db/audience/import/imports.sql.ts'
import { softFacts } from '../../db/audience/suppressions/addresses.sql.ts'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { WEBHOOK } from '../../db/channels/webhook.sql.ts'
import { WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { messagesWithId } from '../../db/delivery/locate.sql.ts'
import { endReports, insertReports } from '../../db/delivery/reports/reports.sql.ts'
import { markFailed } from '../../db/delivery/requeue.sql.ts'
import { requeueMessages } from '../../db/delivery/requeue.ts'
import { releaseDue } from '../../db/delivery/schedule.sql.ts'
import { lockSenders } from '../../db/delivery/senders/senders.sql.ts'
import { lostMessages } from '../../db/delivery/sweep.sql.ts'
import {
  deleteMessages,
  deleteRequests,
  emptyEmails,
  emptyRequests,
  emptyRequestsById,
  scheduledBefore,
} from '../../db/maintenance/retention/retention.sql.ts'
import { comparedAsText } from '../../db/messages/broadcasts/audience.sql.ts'
import { reachedBy } from '../../db/messages/broadcasts/recipients.sql.ts'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import { changeEmails, lockEmails } from '../../db/messages/emails/apply-events.sql.ts'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import { countMatching, idsAsSeen } from '../../db/messages/emails/bulk.sql.ts'
import { findEnds } from '../../db/messages/emails/ended.sql.ts'
import { countFailed } from '../../db/messages/emails/failed.sql.ts'
import { emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import { removeEmails } from '../../db/messages/emails/remove.ts'
import { emailFurther, emailsFound } from '../../db/messages/emails/search.sql.ts'
import { countReplayable, replayable } from '../../db/messages/webhooks/listing.sql.ts'
import { findWhatsappEnds } from '../../db/messages/whatsapp/ended.sql.ts'
import { insertRequests } from '../../db/messages/whatsapp/messages.sql.ts'
import { limitWaits, notify } from '../../db/postgres/pool.ts'
import { readQueuePosition } from '../../db/queue/fair-queue.sql.ts'
import { oftenLost } from '../../db/queue/jobs.sql.ts'
import { AT, acceptSamples, callWithSamples, sample } from '../support/sample-calls.ts'
import { ROOT } from '../support/sources.ts'
import { buildersIn, filesOf, recordStatements, sentText } from '../support/statement-texts.ts'
import { anItem, openStore, type Store } from '../support/stored-emails.ts'
import t from '../support/tap.ts'

/** Runs the operations of each message. */
async function runOperations(store: Store): Promise<void> {
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
  await emailsFound(database, { team_id, failed: true, in_broadcast: false }, { before: id, limit: 30 })
  await emailsFound(database, { team_id, status: 'queued', failed: false }, { limit: 30 })
  await releaseDue(database, EMAIL, 500)
  await lostMessages(database, EMAIL, { after: '-infinity', size: 2_000 }, { before: now, limit: 500 })
  const address = { team_id, identity: 'a@example.org', email: 'a@example.org' }
  await softFacts(database, [address], { most: 5, undisputed: now })
  await emptyEmails(database, { after: id, before: id, limit: 1_000 }, 4)
}

/** Calls functions whose statements depend on more than the properties of samples. */
async function callWithValues(): Promise<void> {
  const tx = sample()
  const key = { dkim_selector: 'x', dkim_public_key: 'x', dkim_private_key: Buffer.from('x') }
  const endpoint = { team_id: 'x', id: 'x', after: 'x', limit: 1 }
  const replay = { what: 'failed', from: AT, to: AT, type: 'x', seen: '1:1:' } as const
  const email = { team_id: 'x', email_id: 'x' }
  const state = { status: 'queued', provider_message_id: null, size_kb: null, suppression: null } as const
  const pending = { reported: true, undecided: ['x'] } as const
  const { requests } = WHATSAPP
  if (!requests) throw new Error('WhatsApp has requests')
  const channel = { ...WHATSAPP, requests }
  const batch = { after: 'x', before: 'x', until: AT, limit: 1 }
  await storeNextKey(tx, 'x', 'x', { seen: null, ...key })
  for (const teams of [null, ['x']]) await messagesWithId(tx, 'x', { teams, limit: 1 })
  await comparedAsText(tx, {
    ...{ team_id: 'x', topic_ids: ['x'], exclude_topic_ids: ['x'] },
    conditions: [{ property: 'x', op: 'gt', value: '1' }],
  })
  await replayable(tx, endpoint, replay)
  await countReplayable(tx, endpoint, replay)
  await oftenLost(tx, 'deliver-email', ['x'], 1)
  for (const status of ['bounced', undefined] as const)
    await emailFurther(tx, { team_id: 'x', status }, 'x', 1)
  await emailFurther(tx, { team_id: 'x', failed: true }, 'x', 1)
  for (const status of ['clicked', undefined] as const)
    await countMatching(tx, 'x', { broadcast_id: 'x', status }, 1)
  await idsAsSeen(tx, 'x', ['x'], { seen: '1:1:', part: 'failure' })
  await countFailed(tx, 'x', { from: AT, most: 1, apart: true })
  const people = { team_id: 'x', broadcast_id: 'x' }
  for (const failed of [true, false])
    await reachedBy(tx, people, { statuses: ['queued'], failed }, { limit: 1 })
  await readQueuePosition(tx, 'deliver-email', 1)
  await addSlice(tx, 'x', 'x', { first: 1, place: null, created: ['x'], known: ['x'], taken: 1, refused: [] })
  const select = sql.fragment`select`
  await insertRequests(
    tx,
    { requests: [], messages: [] },
    { charge: select, jobs: select, due: 1, last: true },
  )
  await markFailed(tx, WEBHOOK, [endpoint])
  await deleteMessages(tx, 'x', channel, batch)
  await deleteRequests(tx, 'x', channel, batch)
  await emptyRequests(tx, 'x', channel, batch)
  await emptyRequestsById(tx, channel, [endpoint], batch)
  await scheduledBefore(tx, WHATSAPP, { at: 'x', id: 'x' }, batch)
  await lockEmails(tx, [email])
  await findEnds(tx, 'x', [{ id: 'x', status: 'bounced', created_at: 'x' }], AT)
  await findWhatsappEnds(tx, 'x', [{ id: 'x', status: 'queued' }])
  for (const after of [null, 'x']) await movePass(tx, { team_id: 'x', queue: 'x', from_at: 'x' }, after)
  await lockSenders(
    tx,
    [1, 2, 3].map((ceiling) => ({ key: `${ceiling}`, ceiling })),
  )
  await notify(tx, 'x', ['x'])
  await limitWaits(tx, { lock: 1, statement: 1 })
  await changeEmails(
    tx,
    [{ ...email, status: 'bounced', provider_message_id: null, size_kb: null, pending }],
    [
      {
        ...email,
        ...state,
        to_emails: ['x'],
        is_late: false,
        pending_recipients: ['x'],
        hard_bounced: false,
      },
    ],
  )
}

const STATEMENTS = join(ROOT, 'test/db/statements')
/** Runs the SQL of pg-boss, which isn't ours. */
const NOT_OURS: readonly string[] = ['db/queue/boss.ts on']

const store = await openStore(t)
const modules = globSync('db/**/*.ts', { cwd: ROOT }).toSorted()
const builders = new Map(modules.map((file) => [file, buildersIn(readFileSync(join(ROOT, file), 'utf8'))]))
const { recorded, stop } = recordStatements()
await runOperations(store)
stop()
const accepted = acceptSamples()
const samples = recordStatements()
await callWithValues()
for (const [file, names] of builders) {
  if (names.length === 0 || !file.endsWith('.sql.ts')) continue
  const functions: Record<string, unknown> = await import(join(ROOT, file))
  for (const [name, called] of Object.entries(functions))
    if (typeof called === 'function' && !recorded.get(file)?.has(name))
      await callWithSamples(called as () => unknown)
}
samples.stop()
accepted.stop()
for (const [file, functions] of samples.recorded)
  for (const [name, texts] of functions) {
    const known = recorded.get(file) ?? new Map()
    if (!known.has(name)) recorded.set(file, known.set(name, texts))
  }

t.test('every function that builds a statement is recorded', async (t) => {
  const missing = [...builders].flatMap(([file, names]) =>
    names.filter((name) => !recorded.get(file)?.has(name)).map((name) => `${file} ${name}`),
  )
  t.strictSame(missing, NOT_OURS)
})

t.test('PostgreSQL can prepare every statement', async (t) => {
  const client = new pg.Client(store.url)
  await client.connect()
  const faults: string[] = []
  for (const [file, functions] of recorded)
    for (const [name, texts] of functions)
      for (const text of texts)
        if (/^\s*(select|with|insert|update|delete)\b/i.test(text))
          await client
            .query(`prepare one as ${sentText(text)}`)
            .then(() => client.query('deallocate one'))
            .catch(({ message }) => void faults.push(`${file} ${name}: ${message}`))
  await client.end()
  t.strictSame(faults, [])
})

t.test('the texts of all statements equal the written ones', async (t) => {
  const built = filesOf(recorded)
  if (process.env.UPDATE_STATEMENTS) {
    rmSync(STATEMENTS, { recursive: true })
    for (const [file, text] of built) {
      mkdirSync(dirname(join(STATEMENTS, file)), { recursive: true })
      writeFileSync(join(STATEMENTS, file), text)
    }
  }
  const written = globSync('**/*.sql', { cwd: STATEMENTS })
  for (const file of new Set([...built.keys(), ...written]))
    t.equal(
      written.includes(file) ? readFileSync(join(STATEMENTS, file), 'utf8') : null,
      built.get(file) ?? null,
      `${file}, or write it with UPDATE_STATEMENTS=1`,
    )
})
