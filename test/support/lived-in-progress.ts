/**
 * Activity in progress in a team that is some weeks old: a half-stored import, and broadcasts in every state
 * except draft. Pages are checked with it and lived-in.ts.
 */
import { sql } from 'slonik'
import { record } from '../../db/accounts/audit/record.ts'
import { storeDraft } from '../../db/audience/import/draft.ts'
import { aBroadcast } from './broadcasts.ts'
import { BUSY_AUDIENCE, storeBroadcastEmails, storeSkips, storeUsage } from './busy-month.ts'
import type { Service, TestTeam } from './service.ts'

const ACTOR = 'ana@example.com'

const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)

/** Creates an import whose columns aren't assigned yet. @returns its id. */
export const anUploadedImport = ({ database }: Service, { id }: TestTeam): Promise<string> => {
  const source =
    'email,city,Kunde seit\nana@example.net,Graz,2019\nno address,Wien,2020\nana@example.net,Linz,2021\n'
  const file = { name: 'customers-2026-11.csv', source, encoding: 'UTF-8', purpose: 'contacts' } as const
  return database.transaction((tx) => storeDraft({ tx, now: new Date() }, id, file, ACTOR))
}

/**
 * Creates an import of 5,000 records, of which a worker has stored most and rejected two.
 * @returns its id.
 */
export async function anImportUnderWay(service: Service, team: TestTeam): Promise<string> {
  const { database } = service
  const { id } = team
  const importId = await anUploadedImport(service, team)
  const refused = [
    { at: 1, row: 3, column: 0, value: 'no address', message: 'must be an email address' },
    { at: 407, row: 412, column: 0, value: 'ana@example,net', message: 'must be an email address' },
  ]
  await database.query(sql.unsafe`
    update contact_imports set draft = false, created_at = now() - interval '3 minutes', records = 5000, created = 2790, updated = 180, repeated = 28, refused = 2
    where team_id = ${id} and id = ${importId}`)
  await database.query(sql.unsafe`
    insert into contact_import_slices (team_id, import_id, first_record, contact_ids, refused)
    values (${id}, ${importId}, 0, '{}', ${JSON.stringify(refused)})`)
  await database.query(sql.unsafe`
    insert into background_jobs (id, team_id, kind, done, total, begun_by, begun_at, progressed_at)
    values (${importId}, ${id}, 'contact.import', 3000, 5000, ${ACTOR}, now() - interval '75 seconds', now())`)
  return importId
}

/** In the order of their starts, so that no later one sends to an address with a hard bounce. */
const STATES = ['sent', 'cancelled', 'braked', 'stopped', 'sending', 'scheduled'] as const
type State = (typeof STATES)[number]

const NAMES: Readonly<Record<State, string>> = {
  scheduled: 'Advent calendar, door 1',
  sending: 'Spring sale',
  braked: 'Customers of 2019, a last try',
  stopped: 'Opening hours over the holidays',
  sent: 'Autumn newsletter of Northwind Traders International: new in the shop, and what has changed',
  cancelled: 'Black Friday',
}

/** The number of emails with each status. */
const EMAILS: Readonly<Record<State, Readonly<Record<string, number>>>> = {
  scheduled: {},
  sending: { sent: 54, delivered: 640, opened: 153, clicked: 37, bounced: 7, complained: 1 },
  braked: { sent: 120, delivered: 613, bounced: 84, complained: 1 },
  stopped: { sent: 10, delivered: 75, opened: 22 },
  sent: { sent: 3, delivered: 702, opened: 350, clicked: 94, bounced: 10, complained: 1 },
  cancelled: { sent: 2, delivered: 127, opened: 4 },
}

/** The additional columns of a broadcast in each state. */
const STANDING: Readonly<Record<State, ReturnType<typeof sql.fragment>>> = {
  scheduled: sql.fragment`state = 'scheduled', send_at = now() + interval '19 hours', started_at = null,
    audience = null, audience_until = null, walked_at = null`,
  sending: sql.fragment`rate_per_minute = 300`,
  braked: sql.fragment`state = 'paused', state_reason = 'bounces', brake = '{"left": 818, "count": 84, "limit": 5}'`,
  stopped: sql.fragment`state = 'paused'`,
  sent: sql.fragment`state = 'sent', started_at = now() - interval '50 hours', ended_at = now() - interval '2 days'`,
  cancelled: sql.fragment`state = 'cancelled', started_at = now() - interval '65 minutes',
    ended_at = now() - interval '1 hour'`,
}

const SKIPS: Partial<Record<State, readonly string[]>> = {
  sending: ['variables', 'suppressed', 'unsubscribed'],
  stopped: ['variables'],
  sent: [...Array<string>(8).fill('variables'), 'suppressed', 'left_topic', 'unsubscribed', 'unsubscribed'],
}

/** The last user action on a broadcast in each state, and how many minutes ago it was. */
const LAST_ACT: Partial<Record<State, { action: string; minutes: number }>> = {
  scheduled: { action: 'broadcast.start', minutes: 20 },
  stopped: { action: 'broadcast.pause', minutes: 5 },
  cancelled: { action: 'broadcast.cancel', minutes: 60 },
}

/** Stores broadcasts of a template to the topic Product news, one in each state. @returns their ids. */
export async function broadcastsAtEveryState(service: Service, team: TestTeam, template: string) {
  const { database } = service
  const made: Partial<Record<State, string>> = {}
  for (const state of STATES) {
    const { id, topic } = await aBroadcast(service, team)
    await database.query(sql.unsafe`
      update broadcasts set name = ${NAMES[state]}, subject = 'Twenty per cent off until Sunday', audience = ${BUSY_AUDIENCE},
        created_at = now() - interval '3 days', updated_at = now() - interval '5 minutes',
        started_at = now() - interval '12 minutes', template_id = ${template},
        template_version_id = (select version_id from templates where id = ${template}),
        topic_ids = array(select id from topics where team_id = ${team.id} and name = 'Product news')
      where id = ${id}`)
    await database.query(sql.unsafe`update broadcasts set ${STANDING[state]} where id = ${id}`)
    await database.query(sql.unsafe`delete from topics where id = ${topic}`)
    await storeBroadcastEmails(service, team, id, EMAILS[state])
    await storeSkips(service, team, id, SKIPS[state] ?? [])
    const act = LAST_ACT[state]
    if (act) {
      const by = { tx: database, now: minutesAgo(act.minutes), actor: ACTOR }
      await record(by, { team_id: team.id, action: act.action, subject: NAMES[state], detail: id })
    }
    made[state] = id
  }
  await database.query(sql.unsafe`
    delete from pgboss.job j using broadcasts b
    where j.name = 'expand-broadcast' and j.id = b.id and b.team_id = ${team.id} and b.state <> 'sending'`)
  await storeUsage(service, team)
  return made as Record<State, string>
}
