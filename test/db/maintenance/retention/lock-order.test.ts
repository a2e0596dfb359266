/**
 * Erasures, deletions, bulk upserts, requeues, topics and reports lock in the same order, so they can't
 * deadlock.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { lockAccount } from '../../../../db/accounts/teams/limits.ts'
import { removeContact } from '../../../../db/audience/contacts/edit.ts'
import { createTopic, removeTopic } from '../../../../db/audience/contacts/topics.ts'
import { readItems, upsertContacts } from '../../../../db/audience/contacts/upsert.ts'
import { reviewSoftSuppressions } from '../../../../db/audience/suppressions/suppress.ts'
import { EMAIL } from '../../../../db/channels/email.sql.ts'
import { requeueMessages } from '../../../../db/delivery/requeue.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../../../db/messages/emails/events.sql.ts'
import { removeEmail, removeEmails } from '../../../../db/messages/emails/remove.ts'
import type { Database } from '../../../../db/postgres/pool.ts'
import { erasePerson } from '../../../support/erase.ts'
import { hold } from '../../../support/held.ts'
import { openPool } from '../../../support/pool.ts'
import { lockWaits } from '../../../support/rows.ts'
import { byCli, sendEmails, world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { until } from '../../../support/worker.ts'

const PEOPLE = 40
const ROUNDS = 9

/** Addresses whose order differs from that of the IDs. */
const address = (at: number): string => `person${(at * 7) % PEOPLE}@example.com`
const everyone = Array.from({ length: PEOPLE }, (_, at) => address(at))
const shuffled = <T>(list: readonly T[]): T[] => [...list].sort(() => Math.random() - 0.5)

t.test("concurrent erasures, deletions, upserts, requeues and reports don't deadlock", async (t) => {
  const { service, call, deps, team } = await world(t, { team: { plan: 'pro' } })
  const { secrets, queue } = deps
  const pool = await openPool(t, service.url, { size: 20 })
  // Transactions aren't retried, so that each deadlock is detected.
  const database: Database = { ...pool, transaction: (work) => pool.transaction(work, 0) }
  const victims: unknown[] = []
  const seen = async (work: Promise<unknown>): Promise<void> => {
    await work.catch((error: { code?: string; cause?: { code?: string } }) => {
      const code = error.code ?? error.cause?.code
      if (code !== 'contact_not_found' && code !== 'not_found') victims.push(error)
    })
  }
  const emailIds: string[] = []
  const refill = async (): Promise<void> => {
    const emails = everyone.flatMap((one, at) => [{ to: [one, address(at + 1)] }, { to: [one] }])
    emailIds.splice(0, Infinity, ...(await sendEmails(service, team, emails)))
  }
  const bulk = (now: Date) => {
    const contacts = shuffled(everyone).map((email) => ({ email, properties: { at: String(now) } }))
    const items = readItems(JSON.stringify({ contacts }))
    return database.transaction((tx) => upsertContacts({ tx, now, secrets }, team.id, items))
  }
  const reports = (now: Date) => {
    const events = shuffled(emailIds).flatMap((email_id, at): EmailEvent[] =>
      everyone.map((recipient) => ({
        team_id: team.id,
        email_id,
        event_key: uuidv7(),
        kind: 'bounced',
        recipient,
        occurred_at: now,
        detail: 'full',
        effect: at % 2 ? 'soft' : 'hard',
      })),
    )
    return database.transaction((tx) => applyEmailEvents(tx, events, now))
  }
  /** Locks one row in the middle until all work waits for it or has finished. */
  const behindGate = async (round: number, begin: () => Promise<unknown>[]): Promise<void> => {
    const commit = await hold(t, pool, async (tx) => {
      if (round % 3 === 0) await lockAccount(tx, team.id)
      if (round % 3 === 1)
        await tx.query(sql.unsafe`select from email_states where id = ${emailIds[PEOPLE] ?? ''} for update`)
      if (round % 3 === 2)
        await tx.query(sql.unsafe`
          select from contacts where team_id = ${team.id} order by id offset ${PEOPLE / 2} limit 1 for update`)
    })
    const calls = begin()
    let over = 0
    const ended = calls.map((call) => seen(call).finally(() => (over += 1)))
    await until('all have come up to the gate', async () => over + (await lockWaits(service)) >= calls.length)
    await Promise.all([commit(), ...ended])
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const now = new Date()
    await refill()
    await bulk(now)
    const topic = await createTopic({ tx: database, now, actor: 'cli' }, team.id, { name: `topic ${round}` })
    for (const one of everyone.slice(0, 4))
      await call('PATCH', `/v1/contacts/${one}`, { key: team.key, body: { topic_ids: [topic.id] } })
    const some = (from: number) => emailIds.slice(from, from + 8)
    const refs = shuffled(emailIds).map((id) => ({ team_id: team.id, id }))
    await behindGate(round, () => [
      reports(now),
      bulk(now),
      erasePerson({ database, queue, secrets }, team.id, address(round)),
      database.transaction((tx) => removeEmails({ tx }, team.id, shuffled(some(round)))),
      database.transaction((tx) => removeEmail(byCli(tx), team.id, emailIds[round] ?? '')),
      database.transaction((tx) => removeContact(byCli(tx), team.id, address(round + 3))),
      database.transaction((tx) => requeueMessages({ tx, queue, now }, EMAIL, refs, { by: 'person' })),
      database.transaction((tx) => removeTopic({ tx, now, actor: 'cli' }, team.id, topic.id)),
      reviewSoftSuppressions(database, now),
      reports(now),
      bulk(now),
    ])
  }
  t.strictSame(victims, [])
})
