/** Set-up for tests of WhatsApp: the provider's template objects, stored templates, sends, rows. */

import { sql } from 'slonik'
import type { Test } from 'tap'
import { number, string } from 'yup'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import {
  createWhatsappTemplate,
  setWhatsappTemplateStatus,
} from '../../db/messages/whatsapp/save-template.ts'
import { messagesFound } from '../../db/messages/whatsapp/search.sql.ts'
import { row } from '../../db/postgres/rows.ts'
import { hubSignature } from '../sandbox/whatsapp.ts'
import { putBackFor, usedBy } from './rows.ts'
import { byCli, makeTeam, type Reply, type Service, WHATSAPP_APP_SECRET } from './service.ts'

type Place = Pick<Service, 'database' | 'deps'>
export type Json = Record<string, unknown>

/** Returns a text with this many variables. */
const slots = (count: number): string =>
  Array.from({ length: count }, (_, index) => `{{${index + 1}}}`).join(' and ')

/** Builds the provider's template object: approved, with variables in its body, and a test's changes. */
export const aTemplate = (
  {
    body = 1,
    header,
    buttons,
    footer,
  }: { body?: number; header?: Json; buttons?: Json[]; footer?: string } = {},
  changes: Json = {},
): Json => ({
  name: `order_ready_${Math.random().toString(36).slice(2)}`,
  language: 'en_US',
  status: 'APPROVED',
  category: 'UTILITY',
  components: [
    ...(header ? [{ type: 'HEADER', ...header }] : []),
    { type: 'BODY', text: `Hello ${slots(body)}.` },
    ...(footer ? [{ type: 'FOOTER', text: footer }] : []),
    ...(buttons ? [{ type: 'BUTTONS', buttons }] : []),
  ],
  ...changes,
})

/** Stores a template for the team. @returns its id and variables. */
export async function makeTemplate(
  { database, deps }: Place,
  teamId: string,
  definition: Json = aTemplate(),
): Promise<{ id: string; slots: string[] }> {
  const now = deps.clock()
  return database.transaction((tx) => createWhatsappTemplate({ tx, now, actor: null }, teamId, definition))
}

export const setStatus = async ({ database, deps }: Place, teamId: string, id: string, status: string) =>
  await database.transaction((tx) =>
    setWhatsappTemplateStatus({ tx, now: deps.clock(), actor: null }, teamId, id, status),
  )

/** Builds a send to one number with one body parameter, and a test's changes. */
export const aMessage = (template_id: string, changes: Json = {}): Json => ({
  template_id,
  to: ['+15555550101'],
  parameters: { 'body:1': 'Ana' },
  ...changes,
})

/** Returns distinct numbers from the range reserved for fiction. */
export const numbers = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `+1555555${String(100_000 + from + index).slice(1)}`)

/** Returns the team's rows, oldest first. */
export const rowsOf = async ({ database }: Place, teamId: string) =>
  (await messagesFound(database, teamId, {}, { limit: 100_000 })).toReversed()

/** The jobs of the default number's messages. */
const ofDefaultNumber = sql.fragment`name in ('deliver-whatsapp', 'deliver-whatsapp-parts')`

/**
 * Returns the row's delivery job: its state, the seconds by which it was deferred, and its attempts. Null
 * without a job.
 */
export const jobOf = async ({ database }: Place, id: string) =>
  await database.maybeOne(sql.type(row({ state: string(), wait: number(), attempts: number() }))`
    select state::text, ${putBackFor} as wait, retry_count as attempts
    from pgboss.job where ${ofDefaultNumber} and id = ${id}`)

/** Makes the waiting jobs of these rows due at once. */
export const setDue = async ({ database }: Place, ids: readonly string[]): Promise<void> => {
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now()
    where ${ofDefaultNumber} and state < 'active' and id = any(${sql.array([...ids], 'uuid')})`)
}

/** Ends every pause of numbers and recipients. */
export const endPauses = async ({ database }: Place): Promise<void> => {
  await database.query(sql.unsafe`update senders set paused_until = null, pause_reason = null`)
  await database.query(sql.unsafe`delete from recipient_pauses`)
}

/** Deletes all delivery jobs, so that a test's worker only finds those of the test. */
export const loseJobs = async ({ database }: Place): Promise<void> => {
  await database.query(sql.unsafe`delete from pgboss.job where ${ofDefaultNumber}`)
}

const templateRow = row({ status: string(), fault: string().nullable() })

/** Returns a template's state, and the provider's last error about it. */
export const templateOf = async ({ database }: Place, id: string) =>
  await database.one(sql.type(templateRow)`select status, fault from whatsapp_templates where id = ${id}`)

/** Returns how many of the team's rows are delivered, and how many have no recorded acceptance. */
export const statusCounts = async ({ database }: Place, teamId: string) =>
  await database.one(sql.type(row({ delivered: number(), untaken: number() }))`
    select count(*) filter (where status = 'delivered') as delivered,
      count(*) filter (where accepted_at is null) as untaken
    from whatsapp_messages where team_id = ${teamId}`)

/** Marks a message as accepted by the provider. */
export const setTaken = async ({ database }: Place, id: string): Promise<void> => {
  await database.query(sql.unsafe`update whatsapp_messages set accepted_at = now() where id = ${id}`)
}

/** Marks a message as failed without an acceptance. */
export const setFailed = async ({ database }: Place, id: string): Promise<void> => {
  await database.query(sql.unsafe`update whatsapp_messages set status = 'failed' where id = ${id}`)
}

/** Returns the team's delivery jobs, in the order of their rows. */
export const deliveryJobs = async ({ database }: Place, teamId: string) =>
  await database.any(sql.type(row({ id: string(), team_id: string(), message_id: string() }))`
    select id, data ->> 'team_id' as team_id, data ->> 'message_id' as message_id from pgboss.job
    where ${ofDefaultNumber} and data ->> 'team_id' = ${teamId} order by data ->> 'message_id'`)

/** Sets the team's quota of messages per period. */
export const setLimit = async ({ database }: Place, teamId: string, whatsapp_limit: number) => {
  await database.transaction((tx) => subscribeTeam(byCli(tx), teamId, { plan: 'pro', whatsapp_limit }))
}

/**
 * Sends a message like `aMessage`. @returns the IDs of its rows. @throws Error with the API's response if it
 * isn't accepted.
 */
export async function sendWhatsapp(
  { call }: Pick<Service, 'call'>,
  { key }: { key: string },
  template_id: string,
  changes: Json = {},
): Promise<string[]> {
  const body = aMessage(template_id, changes)
  const reply = await call('POST', '/v1/whatsapp/messages', { key, body })
  if (reply.status !== 201) throw new Error(JSON.stringify(reply.body))
  return reply.body.data.map(({ id }: { id: string }) => id)
}

/** Posts updates to a WhatsApp hook with Meta's signature. */
export function postUpdates(
  { call }: Pick<Service, 'call'>,
  updates: object,
  { path = '/hooks/whatsapp', secret = WHATSAPP_APP_SECRET } = {},
): Promise<Reply> {
  const raw = JSON.stringify(updates)
  return call('POST', path, { raw, headers: { 'X-Hub-Signature-256': hubSignature(secret, raw) } })
}

/** Asserts that a call was rejected like this, with only the envelope in its body. */
export const isRefused = (t: Test, reply: Reply, status: number, code: string, message = /./): void => {
  t.equal(reply.status, status, JSON.stringify(reply.body))
  t.same(Object.keys(reply.body), ['error'])
  t.same(Object.keys(reply.body.error).sort(), ['code', 'message'])
  t.equal(reply.body.error.code, code)
  t.match(reply.body.error.message, message)
}

/**
 * Set-up for tests of sends: creates teams with a template that has one body variable, and sends for them.
 */
export const whatsappClient = (service: Service) => ({
  send: async (key: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
    await service.call('POST', '/v1/whatsapp/messages', { key, body, headers }),
  usedBy: async (teamId: string): Promise<number> => (await usedBy(service, teamId)).whatsapp,
  async sender(plan = 'pro') {
    const team = await makeTeam(service, { plan })
    const template = await makeTemplate(service, team.id)
    return { team, key: team.key, template }
  },
})
