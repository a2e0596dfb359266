/** Set-up for tests of webhooks: a team with a receiver for its events, and events of emails. */
import type { Test } from 'tap'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../db/messages/emails/events.sql.ts'
import { openDatabase } from '../../db/postgres/pool.ts'
import { adminCli } from './admin.ts'
import { startReceiver } from './receiver.ts'
import { makeTeam, type Service, startService } from './service.ts'

/** Creates a team with a receiver of these event types. */
export async function beginWebhooks(
  t: Test,
  { service, cli }: { service: Service; cli: ReturnType<typeof adminCli> },
  { types = '*' }: { types?: string } = {},
) {
  const team = await makeTeam(service)
  const receiver = await startReceiver(t)
  const endpoint = await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', types])
  return { team, receiver, endpoint, show: () => cli.json(['webhook', 'show', team.id, endpoint.id]) }
}

/** Starts a service with its CLI, and teams with receivers. `rows` stores events. */
export async function startWebhooks(t: Test) {
  const service = await startService(t)
  // A separate pool, because the service prepares a different statement with the same name.
  const rows = { database: await openDatabase(service.url, { size: 2 }) }
  t.teardown(() => rows.database.end())
  const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
  const begin = (t: Test, options = {}) => beginWebhooks(t, { service, cli }, options)
  return { service, rows, cli, begin }
}

type Event = Partial<EmailEvent> & Pick<EmailEvent, 'team_id' | 'email_id' | 'kind'>

/** Builds an event that happens now, with a test's changes. */
export const anEvent = ({ kind, ...event }: Event): EmailEvent => ({
  ...{ kind, event_key: kind, recipient: null, occurred_at: new Date(), detail: `it is ${kind}` },
  ...event,
})

/** Stores events of emails, like reports. */
export const happen = ({ database }: Pick<Service, 'database'>, ...events: Event[]) =>
  database.transaction((tx) => applyEmailEvents(tx, events.map(anEvent), new Date()))
