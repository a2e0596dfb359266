/**
 * Set-up for tests of ingestion: a contact with emails, reports about them, and the hook that accepts them.
 */
import type { Test } from 'tap'
import { storeReports } from '../../db/delivery/reports/store.ts'
import { returnPath } from '../../db/messages/emails/return-path.ts'
import { deliveryStatus, type RecipientFields } from '../sandbox/reports.ts'
import { storeContact, storedReports, storeEmails, storeTeam } from './reports.ts'
import { type Service, SMTP_REPORT_TOKEN, startService } from './service.ts'

export const raw = Buffer.from('From: hello@example.com\r\nSubject: Hello\r\n\r\nHello\r\n')
export const FAILED: RecipientFields = {
  action: 'failed',
  status: '5.1.1',
  diagnostic: '550 5.1.1 No such user',
}
export const DELIVERED: RecipientFields = { action: 'delivered', status: '2.0.0' }

/** Starts a service and does the same as `reportsOf`. */
export const beginReports = async (t: Test, emails = 1, options: { clock?: () => Date } = {}) =>
  reportsOf(await startService(t, options), emails)

/** Creates a team, its contact ana@example.org, and emails to that address. */
export async function reportsOf(service: Service, emails = 1) {
  const team = await storeTeam(service)
  await storeContact(service, team, 'ana@example.org')
  const ids = await storeEmails(
    service,
    team,
    Array.from({ length: emails }, () => ['Ana@example.org']),
  )
  const pathOf = (id: string) => returnPath(service.deps.secrets, { team_id: team, id }, 'example.com') ?? ''
  const about = (id: string, recipient = 'ana@example.org') => ({ mail_from: pathOf(id), recipient, raw })
  const status = (id: string, fields: RecipientFields, recipient = 'ana@example.org') =>
    deliveryStatus(about(id), [{ recipient, ...fields }])
  return { service, team, ids, first: ids[0] ?? '', about, status }
}

export const post = async ({ call }: Pick<Service, 'call'>, body: Buffer): Promise<number> =>
  (
    await call('POST', '/hooks/smtp', {
      raw: new Uint8Array(body),
      headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
    })
  ).status

export const settled = async (service: Service): Promise<boolean> =>
  (await storedReports(service)).every(({ state }) => state !== 'pending')

/** Stores reports as the hook would, all at once, with a shared job. */
export const storeAll = async (
  { database, deps }: Service,
  bodies: readonly Buffer[],
  provider: 'smtp' | 'ses' = 'smtp',
  keys: readonly string[] = [],
) =>
  await database.transaction(async (tx) => {
    const received_at = deps.clock()
    await storeReports(
      { tx, queue: deps.queue },
      bodies.map((body, index) => ({ provider, event_key: keys[index] ?? `r${index}`, body, received_at })),
    )
  })

/** Stores reports one after another, each with its own job. */
export async function storeEach(
  service: Service,
  bodies: readonly Buffer[],
  provider: 'smtp' | 'ses' = 'smtp',
  keys: readonly string[] = [],
) {
  for (const [index, body] of bodies.entries())
    await storeAll(service, [body], provider, [keys[index] ?? `r${index}`])
}
