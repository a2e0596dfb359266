/**
 * Broadcasts for tests of their delivery: rows in the state after a start, and emails as the fan-out creates
 * them.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, object, string } from 'yup'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import type { Database } from '../../db/postgres/pool.ts'
import { row } from '../../db/postgres/rows.ts'
import { type BroadcastStat, findStats } from '../../db/stats/daily/broadcasts.sql.ts'
import type { Service, TestTeam } from './service.ts'
import { anItem } from './stored-emails.ts'

const from = { name: null, address: 'hello@example.com', domain: 'example.com' }

export type TestBroadcast = {
  id: string
  topic: string
  /** Creates contacts of the topic and an email for each. @returns the ids of the emails. */
  emails(...addresses: string[]): Promise<string[]>
  /** Sets the state with a statement. */
  become(state: string): Promise<void>
  figures(): Promise<Record<string, number>>
  /** Adds to the stored stats. */
  moved(figures: Partial<Record<Exclude<BroadcastStat, 'made'>, number>>): Promise<void>
  /** Makes its fan-out job due now. Every contact has already been processed. */
  walk(): Promise<void>
  /** True if no one has claimed the job of an email. */
  isWaiting(emailId: string): Promise<boolean>
  /** Returns the seconds until the job of an email is due. */
  waitOf(emailId: string): Promise<number>
  skips(): Promise<Record<string, string>>
}

const walkIn = async (database: Database, id: string, interval: string): Promise<void> =>
  void (await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + ${interval}::interval where name = 'expand-broadcast' and id = ${id}`))

/** Creates a broadcast that is being sent, with its own topic. */
export async function aBroadcast(
  { database, deps, call }: Service,
  { id: teamId, key }: TestTeam,
  { rate_per_minute = null }: { rate_per_minute?: number | null } = {},
): Promise<TestBroadcast> {
  const [id, topic] = [uuidv7(), uuidv7()]
  await database.query(sql.unsafe`
    insert into topics (team_id, id, name, created_at) values (${teamId}, ${topic}, ${`News ${topic}`}, now())`)
  await database.query(sql.unsafe`
    insert into broadcasts (team_id, id, name, state, from_address, reply_to, subject, template_id, topic_ids,
      exclude_topic_ids, conditions, variables, tags, template_version_id, link_base, rate_per_minute, created_at,
      updated_at, started_at, audience_until, audience, walked_at)
    values (${teamId}, ${id}, 'News', 'sending', 'hello@example.com', '', 'News', ${uuidv7()},
      ${sql.array([topic], 'uuid')}, '{}', '[]', '{}', '[]', ${uuidv7()}, 'https://mail.example.com',
      ${rate_per_minute}, now(), now(), now(), now(), 2, now())`)
  // Without this job, the sweep would expand the broadcast. The job isn't due, because the broadcast would
  // end before its emails exist.
  await database.transaction((tx) =>
    deps.queue.enqueue(tx, 'expand-broadcast', [{ team_id: teamId, broadcast_id: id }]),
  )
  await walkIn(database, id, '1 hour')
  return {
    id,
    topic,
    async emails(...addresses) {
      const contacts: { id: string; email: string }[] = []
      for (const email of addresses) {
        const { body } = await call('POST', '/v1/contacts', { key, body: { email, topic_ids: [topic] } })
        contacts.push(body)
      }
      const outcomes = await database.transaction((tx) =>
        acceptEmails(
          { ...deps, tx },
          { team_id: teamId, domain: null, broadcast_id: id },
          contacts.map((contact) => anItem({ from, to: [contact.email], contact_id: contact.id })),
        ),
      )
      return outcomes.map((outcome) => {
        if (outcome.kind === 'stored') return outcome.row.id
        throw new Error(outcome.kind === 'refused' ? outcome.refusal.message : 'a replay')
      })
    },
    async become(state) {
      await database.query(sql.unsafe`
        update broadcasts set state = ${state} where team_id = ${teamId} and id = ${id}`)
    },
    isWaiting: (emailId) =>
      database.exists(sql.type(object())`
        select from pgboss.job where id = ${emailId} and state < 'active'`),
    waitOf: async (emailId) =>
      (await database.maybeOneFirst(sql.type(row({ seconds: number() }))`
        select greatest(0, extract(epoch from start_after - now())) as seconds
        from pgboss.job where id = ${emailId}`)) ?? 0,
    async moved(figures) {
      for (const [figure, count] of Object.entries(figures))
        await database.query(sql.unsafe`
          insert into broadcast_figures (team_id, broadcast_id, figure, count)
          values (${teamId}, ${id}, ${figure}, ${count})`)
    },
    walk: () => walkIn(database, id, '0'),
    figures: async () =>
      Object.fromEntries(
        (await findStats(database, teamId, [id]))
          .filter(({ count }) => count !== 0)
          .map(({ figure, count }) => [figure, count]),
      ),
    skips: async () =>
      Object.fromEntries(
        (
          await database.any(sql.type(row({ email: string(), reason: string() }))`
            select email, reason from broadcast_skips where team_id = ${teamId} and broadcast_id = ${id}`)
        ).map(({ email, reason }) => [email, reason]),
      ),
  }
}
