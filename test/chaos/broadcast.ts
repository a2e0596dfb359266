/**
 * Starts a broadcast to many contacts through the API. At its end, counts the contacts that matched and those
 * that received it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { makeAudience } from '../support/audience.ts'
import type { TestTeam } from '../support/service.ts'
import { type Account, contradictions } from './account.ts'
import { attempt } from './load.ts'
import { type Start, type World, within } from './world.ts'

/** The settings with which an API can start broadcasts. Links start with this URL. */
export const REACHABLE: Start = { env: { PUBLIC_URL: 'http://127.0.0.1' } }

export type Broadcast = {
  id: string
  team: TestTeam
  fitting: number
  /** The messages that the relay had received before. */
  others: ReadonlySet<string>
}

/** One in BLANK contacts has no value for a variable, and one in OFF has unsubscribed. */
const BLANK = 50
const OFF = 40

/** Creates the contacts with one statement, and starts a broadcast to them. */
export async function startBroadcast(world: World, contacts: number): Promise<Broadcast> {
  const team = await world.team()
  const draft = await makeAudience(world.database, team.id, { contacts, blank: BLANK, unsubscribed: OFF })
  const [row] = await world.sql<{ count: string }>(
    `select count(*) as count from contacts where team_id = $1 and status = 'subscribed'`,
    [team.id],
  )
  const made = await attempt(world, team, draft, '/v1/broadcasts')
  const broadcast = {
    id: made.body.id,
    team,
    fitting: Number(row?.count),
    others: new Set(world.relay.copies.keys()),
  }
  await insistOn(world, broadcast, 'send', 202)
  return broadcast
}

/** Schedules a second broadcast to the same contacts, in some seconds. @returns its id. */
export async function scheduleAgain(world: World, { id, team }: Broadcast, seconds: number): Promise<string> {
  const headers = { Authorization: `Bearer ${team.key}` }
  const first = await (await fetch(`${world.apis[0]?.base()}/v1/broadcasts/${id}`, { headers })).json()
  const { template_id, from, subject, topic_ids } = first as Record<string, unknown>
  const draft = { name: 'Once more', template_id, from, subject, topic_ids }
  const { body } = await attempt(world, team, draft, '/v1/broadcasts')
  const send_at = new Date(Date.now() + seconds * 1_000).toISOString()
  await attempt(world, team, { send_at }, `/v1/broadcasts/${body.id}/send`)
  return body.id
}

/** Repeats an action until it returns this status. @returns false if the broadcast's state forbids it. */
export async function insistOn(
  world: World,
  { id, team }: Broadcast,
  verb: string,
  wanted: number,
): Promise<boolean> {
  while (!world.closed.aborted) {
    const { status } = await attempt(world, team, {}, `/v1/broadcasts/${id}/${verb}`)
    if (status === wanted) return true
    if (status >= 400 && status < 500) return false
    await sleep(200)
  }
  return false
}

type Tally = { state: string; made: number; left: number; skipped: number }

/** Reads a broadcast's state from the rows. Null while the database is unavailable. */
export async function tally({ sql }: World, { id, team }: Broadcast): Promise<Tally | null> {
  const rows = await sql<Record<keyof Tally, string>>(
    `select state,
      (select count(*) from emails where team_id = $1 and broadcast_id = $2) as made,
      (select count(*) from emails where team_id = $1 and broadcast_id = $2 and status <> 'queued') as left,
      (select count(*) from broadcast_skips where team_id = $1 and broadcast_id = $2) as skipped
    from broadcasts where team_id = $1 and id = $2`,
    [team.id, id],
  ).catch(() => [])
  const [row] = rows
  if (!row) return null
  return { state: row.state, made: Number(row.made), left: Number(row.left), skipped: Number(row.skipped) }
}

/** Counts the stats that differ from a recount of rows. */
async function wrongFigures({ apis }: World, { id, team }: Broadcast, { made, skipped }: Tally) {
  const response = await fetch(`${apis[0]?.base()}/v1/broadcasts/${id}`, {
    headers: { Authorization: `Bearer ${team.key}` },
  })
  const { stats } = (await response.json()) as { stats: Record<string, number> }
  const wanted = { made, skipped, queued: 0, sent: made }
  return Object.entries(wanted).filter(([figure, count]) => stats[figure] !== count).length
}

/** Waits for its end, and counts the cost. @param ended when the fault ended. */
export async function endOf(
  world: World,
  broadcast: Broadcast,
  { ended, seconds }: { ended: number; seconds: number },
): Promise<Account> {
  const isOver = await within(seconds, async () => (await tally(world, broadcast))?.state === 'sent')
  const recovered = isOver ? (performance.now() - ended) / 1_000 : null
  const counted = (await tally(world, broadcast)) ?? { state: '', made: 0, left: 0, skipped: 0 }
  const rows = await world.sql<{ id: string }>(`select id from emails where team_id = $1`, [
    broadcast.team.id,
  ])
  const copies = rows.map(({ id }) => world.relay.copies.get(id) ?? [])
  const ids = new Set(rows.map(({ id }) => id))
  const strange = [...world.relay.copies.keys()].filter(
    (id) => !ids.has(id) && !broadcast.others.has(id),
  ).length
  const sum = (numbers: number[]): number => numbers.reduce((all, each) => all + each, 0)
  const over =
    Math.abs(broadcast.fitting - counted.made - counted.skipped) +
    (isOver ? await wrongFigures(world, broadcast, counted) : 0) +
    (await contradictions(world)) +
    strange
  return {
    accepted: broadcast.fitting,
    lost: copies.filter((each) => each.length === 0).length,
    repeated: sum(copies.map((each) => Math.max(0, each.length - 1))),
    after_answer: sum(
      copies.map((each) => {
        const first = each.findIndex(({ answered }) => answered)
        return first < 0 ? 0 : each.length - 1 - first
      }),
    ),
    over,
    recovered,
    note: `${counted.made} created, ${counted.skipped} skipped`,
  }
}
