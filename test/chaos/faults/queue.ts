/** Jobs that are lost, poisoned or too many, and reports whose API process is killed. */

import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { sql } from 'slonik'
import { createProducer } from '../../../db/queue/producer.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { requeueStale } from '../../../workers/jobs/requeue-stale.ts'
import { ageEmailRows, deleteEmailRows } from '../../support/email-rows.ts'
import { SMTP_REPORT_TOKEN } from '../../support/service.ts'
import { inFlight, settle } from '../account.ts'
import { type Fault, inTurn } from '../fault.ts'
import { insist, type Load, send, sendBatches } from '../load.ts'
import { largest } from '../measure.ts'
import { type Start, type World, within } from '../world.ts'

/** A worker with little memory. */
const SMALL: Start = { argv: ['--max-old-space-size=128'] }

/** Stops the workers during some work, and starts others afterwards. */
async function withoutWorkers<T>(world: World, work: () => Promise<T>, own: Start = {}): Promise<T> {
  const count = world.workers.length
  await Promise.all(world.workers.splice(0).map((worker) => worker.stop()))
  const done = await work()
  const starts = Array.from({ length: count }, () => world.start('workers/main.ts', own))
  world.workers.push(...(await Promise.all(starts)))
  return done
}

/** A bounce report of a mail server to an email's return address. */
const bounce = (returnPath: string): string =>
  [
    'From: MAILER-DAEMON@chaos.test',
    `To: ${returnPath}`,
    'Subject: Undelivered',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="b"',
    '',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; chaos.test',
    '',
    'Final-Recipient: rfc822; someone@example.org',
    'Action: failed',
    'Status: 5.1.1',
    'Diagnostic-Code: smtp; 550 5.1.1 no such user',
    '',
    '--b--',
    '',
  ].join('\r\n')

async function postReport(world: World, nth: number, report: string): Promise<boolean> {
  const response = await fetch(`${inTurn(world.apis, nth).base()}/hooks/smtp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
    body: report,
  }).catch(() => null)
  return response?.ok === true
}

/** Posts a report until it is accepted, and kills the process that accepted it. */
async function reportAndKill(world: World, nth: number, report: string): Promise<void> {
  while (!world.closed.aborted && !(await postReport(world, nth, report))) await sleep(100)
  if (nth % 10 === 0) inTurn(world.apis, nth).signal('SIGKILL')
}

export const queueFaults: readonly Fault[] = [
  {
    id: 'A4',
    words: 'all jobs deleted before a sweep',
    load: '300 in batches',
    async run(world, scale) {
      const team = await world.team()
      const load = await withoutWorkers(world, async () => {
        const sent = await sendBatches(world, team, 300 * scale)
        await world.sql(`delete from pgboss.job where name = 'deliver-email'`)
        await ageEmailRows(world, sql.fragment`status = 'queued'`, '1 hour')
        return sent
      })
      const queue = createProducer()
      const ended = performance.now()
      const deps = {
        database: world.database,
        queue: queue as unknown as WorkerDeps['queue'],
        log: pino({ level: 'silent' }),
      }
      await requeueStale(deps)
      return { ...(await settle(world, load, { ended })), note: 'recovery counted from the sweep', limit: 30 }
    },
  },
  {
    id: 'A5',
    words: 'kill -9 of an API process right after it accepts a report, while no worker runs',
    load: '60 emails, 60 bounces',
    async run(world) {
      const team = await world.team()
      const returnPaths: string[] = []
      world.relay.manners((step, line) => {
        if (step === 'mail') returnPaths.push(/<([^>]*)>/.exec(line)?.[1] ?? '')
        return undefined
      })
      const load = await send(world, [team], 60)
      const account = await settle(world, load)
      await withoutWorkers(world, async () => {
        for (const [nth, path] of returnPaths.entries()) await reportAndKill(world, nth, bounce(path))
      })
      const ended = performance.now()
      const ids = [...load.accepted.values()]
      const left = async () =>
        (await world.sql(`select id from emails where id = any($1) and status <> 'bounced'`, [ids])).length
      const all = await within(60, async () => (await left()) === 0)
      const recovered = all ? (performance.now() - ended) / 1_000 : null
      return { ...account, lost: account.lost + (await left()), recovered, note: 'all applied', limit: 30 }
    },
  },
  {
    id: 'A7',
    words: 'an unreadable job, a response with NULs, and one that never comes',
    load: '300 singles',
    async run(world, scale) {
      const team = await world.team()
      const poisoned: Load = { accepted: new Map(), wrong: [] }
      await withoutWorkers(world, async () => {
        for (const key of ['unreadable', 'nul', 'hang'])
          await insist(world, team, `${key}-${team.id}`, poisoned)
        const unreadable = poisoned.accepted.get(`unreadable-${team.id}`)
        await world.sql(`update pgboss.job set data = '{"email_id": 5}' where id = $1`, [unreadable])
      })
      const nul = poisoned.accepted.get(`nul-${team.id}`)
      const hang = poisoned.accepted.get(`hang-${team.id}`)
      world.relay.manners((step, id) => {
        if (step !== 'dot') return undefined
        if (id === nul) return '451 4.3.0 \0 and \ud83d'
        return id === hang ? 'hang' : undefined
      })
      const load = await send(world, [team], 300 * scale)
      const account = await settle(world, load)
      const dead = await within(
        30,
        async () =>
          (await world.sql(`select 1 from pgboss.job where name = 'deliver-email-dead'`)).length > 0,
      )
      return {
        ...account,
        lost: account.lost + (dead ? 0 : 1),
        note: 'the unreadable one becomes a dead letter',
        limit: 30,
      }
    },
  },
  {
    id: 'A7/memory',
    words: 'a job that exhausts its worker’s memory at each attempt',
    load: '300 singles after it',
    async run(world, scale) {
      const team = await world.team()
      const poison: Load = { accepted: new Map(), wrong: [] }
      const load = await withoutWorkers(
        world,
        async () => {
          await insist(world, team, `memory-${team.id}`, poison)
          const much = `('[' || repeat('[],', 6000000) || '[]]')::jsonb`
          await world.sql(`update accepted_emails set tags = ${much} where team_id = $1`, [team.id])
          return send(world, [team], 300 * scale)
        },
        SMALL,
      )
      const ended = performance.now()
      const account = await settle(world, load, { ended })
      const starts = world.workers.reduce((sum, worker) => sum + worker.starts(), 0)
      // Waiting for its retries would be slow, so the rest of them is removed here.
      const id = [...poison.accepted.values()][0]
      const isDead = async () => {
        const spent = `update pgboss.job set retry_limit = retry_count
          where name = 'deliver-email' and id = $1 and state <= 'active' returning 1`
        await world.sql(spent, [id])
        const dead = `select 1 from pgboss.job where name = 'deliver-email-dead' and source_id = $1`
        return (await world.sql(dead, [id])).length > 0
      }
      const quarantined = await within(90, isDead)
      await deleteEmailRows(world, sql.fragment`id = ${id ?? null}`)
      return {
        ...account,
        over: account.over + (quarantined ? 0 : 1),
        note: `${starts - world.workers.length} deaths before all singles were sent; then it becomes a dead letter`,
        allowed: inFlight(starts),
        limit: 90,
      }
    },
  },
  {
    id: 'A10',
    words: 'a backlog at a latency of 5 s',
    load: '5,000 in batches',
    async run(world, scale) {
      const team = await world.team()
      let slow = true
      world.relay.manners(async (step) => {
        if (step === 'dot' && slow) await Promise.race([sleep(5_000), within(5, () => !slow)])
        return undefined
      })
      const load = await sendBatches(world, team, 5_000 * scale)
      const rss = await largest(world.workers)
      slow = false
      const account = await settle(world, load, { seconds: 300 * scale })
      return { ...account, note: `workers need ${rss} MB at most`, limit: 300 * scale }
    },
  },
]
