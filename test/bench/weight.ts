/** Rows 12 to 15: a full database, a long queue, memory, and bytes per email. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { number } from 'yup'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { row } from '../../db/postgres/rows.ts'
import { deleteEmailRows } from '../support/email-rows.ts'
import type { TestTeam } from '../support/service.ts'
import { type Accepts, acceptInTurns, fill, measureAccepts } from './accepts.ts'
import { measureRepairs } from './backlog.ts'
import { measureUpserts } from './contacts.ts'
import type { Through } from './deliveries.ts'
import { atLeast, type Figure, QUICK, slope, upTo } from './figures.ts'
import { asTeam, client, mail } from './load.ts'
import { pourInTurns } from './relay.ts'
import type { Place, Rig } from './rig.ts'
import { startSmtpSink } from './sinks.ts'
import { EMAILS } from './ten-million.ts'

/** Rows 1 and 11 in an empty database. */
type Empty = { accepts: Accepts; upserts: { ours: number; reference: number } }
/** The baseline of row 14: the same measures without its additions. */
export type Baseline = { accepts: Accepts; through: Through }

const settled = ({ database }: Place) => database.query(sql.unsafe`analyze`)

/**
 * Row 12: rows 1, 5 and 11 with 10,000,000 emails and 3,000,000 contacts stored, compared with an empty
 * database: row 1 relative to the plain loop in each, row 5 in turns. It removes its own rows.
 */
export async function measureFull(rig: Rig, { accepts, upserts }: Empty): Promise<Figure[]> {
  const [full, empty] = [await rig.full(), await rig.place()]
  const accepted = await measureAccepts(full)
  await purgeDue(full)
  const [poured = 0, poured_empty = 0] = await pourInTurns(
    [await withTeam(full), await withTeam(empty)],
    QUICK ? 1 : 3,
  )
  const upserted = await measureUpserts(full)
  await dropRun(full)
  await Promise.all([full.close(), empty.close()])
  const note = `${EMAILS.toLocaleString('en')} emails and their contacts stored; reference: the empty database`
  const row = (
    letter: string,
    of: string,
    figure: Pick<Figure, 'ours' | 'reference' | 'unit'>,
    goal = 0.9,
  ): Figure => atLeast(goal, { row: `12${letter}`, measure: `row ${of}, full database`, ...figure, note })
  const byLoop = ({ many, reference }: Accepts): number => many / reference
  return [
    row('a', '1', { ours: byLoop(accepted), reference: byLoop(accepts), unit: '× loop' }, 0.95),
    row('b', '5', { ours: poured, reference: poured_empty, unit: 'emails/s' }),
    row('c', '11', { ours: 1_000 / upserted.ours, reference: 1_000 / upserts.ours, unit: 'calls/s' }),
  ]
}

/** Adds a team to a place. */
async function withTeam(place: Place): Promise<{ place: Place; team: TestTeam }> {
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  return { place, team }
}

/**
 * Removes the row's additions to the ten million emails. Its teams have this name, and all other jobs are
 * deferred.
 */
async function dropRun({ database }: Place): Promise<void> {
  const ours = sql.fragment`team_id in (select id from teams where name = 'A team')`
  await deleteEmailRows({ database }, ours)
  await database.query(sql.unsafe`delete from email_events where ${ours}`)
  await database.query(sql.unsafe`delete from pgboss.job where start_after < now()`)
  await database.query(sql.unsafe`delete from teams where name = 'A team'`)
}

/**
 * Row 13: rows 1 and 5 with 200,000 waiting jobs, and with as many deferred ones, in turns with an empty
 * database. Then what repairs a queue of that length.
 */
export async function measureBacklog(rig: Rig): Promise<Figure[]> {
  const waiting = await backlogged(rig, 'waiting')
  const putOff = await backlogged(rig, 'deferred')
  const empty = await withTeam(await rig.place())
  const [accepted = 0, ...beside] = await acceptInTurns([empty.place, waiting.place, putOff.place])
  await Promise.all([empty.place, putOff.place].map(purgeDue))
  const [poured = 0, ...pouredBeside] = await pourInTurns([empty, putOff], QUICK ? 1 : 3)
  const repairs = await measureRepairs(waiting.place, waiting.team)
  const rates = [await drained(waiting.place, upTo(8_000)), ...pouredBeside]
  await Promise.all([empty, waiting, putOff].map(({ place }) => place.close()))
  const rated = (['waiting', 'deferred'] as const).flatMap((jobs, index) => {
    const row = `13${index === 0 ? 'a' : 'b'}`
    const note = `200,000 jobs ${jobs}; reference: none`
    const figure = (of: string, ours: number, reference: number, unit: string): Figure =>
      atLeast(0.9, { row, measure: `row ${of}, 200,000 jobs ${jobs}`, ours, reference, unit, note })
    return [
      figure('1', beside[index] ?? 0, accepted, 'emails/s'),
      figure('5', rates[index] ?? 0, poured, 'emails/s'),
    ]
  })
  return [...rated, ...repairs]
}

/** Creates a place with 200,000 jobs of one team. */
async function backlogged(rig: Rig, jobs: 'waiting' | 'deferred') {
  const one = await withTeam(await rig.place())
  await fill(one.place, one.team, { emails: 200_000, jobs })
  await settled(one.place)
  return one
}

/** Deletes the jobs of accepted emails, because they would be sent during the next measurement. */
const purgeDue = ({ database }: Place) =>
  database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email' and start_after <= now()`)

/** Measures the emails per second of the backlog itself. */
async function drained(place: Place, mails: number): Promise<number> {
  const sink = await startSmtpSink()
  const worker = await place.worker({ SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true` })
  await sink.until(upTo(1_000))
  const [started, before] = [performance.now(), sink.taken()]
  await sink.until(before + mails)
  const rate = (mails * 1_000) / (performance.now() - started)
  await worker.stop()
  await sink.stop()
  return rate
}

/** Row 14: megabytes under load, and their growth at half of the load. */
export async function measureMemory(rig: Rig, baseline: Baseline, minutes: number): Promise<Figure[]> {
  const place = await rig.place()
  const teams = await place.teams(50)
  const sink = await startSmtpSink()
  const api = await place.api()
  const worker = await place.worker({ SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true` })
  const samples: { api: number; worker: number; x: number }[] = []
  const { post } = client(api.base)
  const body = JSON.stringify({ emails: Array.from({ length: 10 }, () => mail(4_096)) })
  const pause = 10_000 / (baseline.through.rate / 2)
  const until = performance.now() + minutes * 60_000
  const warm = performance.now() + Math.min(60_000, minutes * 20_000)
  for (let call = 0; performance.now() < until; call++) {
    const team = teams[call % teams.length]
    const due = performance.now() + pause
    if (team) await post('/v1/emails/batch', body, asTeam(team))
    if (performance.now() > warm && call % 20 === 0)
      samples.push({ api: await api.rss(), worker: await worker.rss(), x: performance.now() / 60_000 })
    await sleep(Math.max(0, due - performance.now()))
  }
  await place.close()
  await sink.stop()
  return memoryFigures(baseline, samples, minutes)
}

function memoryFigures(
  { accepts, through }: Baseline,
  samples: readonly { api: number; worker: number; x: number }[],
  minutes: number,
): Figure[] {
  const resident = (row: string, measure: string, ours: number): Figure => ({
    ...{
      row,
      measure,
      ours,
      reference: 200,
      unit: 'MB',
      ratio: ours / 200,
      goal: '≤ 200 MB',
      met: ours <= 200,
    },
    note: 'the peak in rows 1, 4 and 5',
  })
  const growth = (row: string, who: 'api' | 'worker'): Figure => {
    const ours = slope(samples.map((sample) => ({ x: sample.x, y: sample[who] })))
    const last = samples.at(-1)?.[who] ?? Number.NaN
    return {
      row,
      measure: `memory growth of ${who === 'api' ? 'the API' : 'the worker'} at half load`,
      ours,
      reference: last,
      unit: 'MB/min',
      ratio: ours / last,
      goal: '≈ 0',
      met: ours < 0.01 * last,
      note: `over ${minutes} minutes, the first third or minute left out; reference: megabytes at the end`,
    }
  }
  return [
    resident('14a', 'memory of the API', Math.max(accepts.memory, through.api_memory)),
    resident('14b', 'memory of the worker', through.worker_memory),
    growth('14c', 'api'),
    growth('14d', 'worker'),
  ]
}

/** Each email has a row in each of these tables. */
const EMAIL_TABLES = sql.fragment`unnest(array['accepted_emails', 'email_states']::regclass[]) as t (each)`

/** Returns the bytes on disk of emails, their indexes, events and jobs. */
const bytesOf = ({ database }: Place) =>
  database.one(sql.type(row({ rows: number(), indexes: number(), events: number(), jobs: number() }))`
    select (select sum(pg_table_size(each)) from ${EMAIL_TABLES}) as rows,
      (select sum(pg_indexes_size(each)) from ${EMAIL_TABLES}) as indexes,
      pg_total_relation_size('email_events') as events,
      (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'pgboss.job'::regclass) as jobs`)

const walOf = ({ database }: Place): Promise<number> =>
  database.oneFirst(sql.type(row({ at: number() }))`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as at`)

/** Row 15: the size of an accepted and delivered template email. */
export async function measureBytes(rig: Rig): Promise<Figure[]> {
  const MAILS = upTo(10_000)
  const place = await rig.place()
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  const template = await place.database.transaction((tx) =>
    saveTemplate({ tx, now: new Date(), actor: 'cli' }, team.id, {
      name: 'Welcome',
      html: `<p>Hello {{name}}</p>${'x'.repeat(4_096)}`,
      text: '',
    }),
  )
  const api = await place.api()
  const sink = await startSmtpSink()
  const body = JSON.stringify({
    emails: Array.from({ length: 100 }, (_, index) => ({
      from: 'Acme <hello@example.com>',
      to: [`person${index}@example.org`],
      subject: 'Welcome',
      template_id: template.id,
      variables: { name: 'Ana' },
    })),
  })
  const { post } = client(api.base, 4)
  // A checkpoint in between would log every page once more.
  await place.database.query(sql.unsafe`alter system set checkpoint_timeout = '1h'`)
  await place.database.query(sql.unsafe`select pg_reload_conf()`)
  await place.database.query(sql.unsafe`checkpoint`)
  const [before, started] = [await bytesOf(place), await walOf(place)]
  for (let sent = 0; sent < MAILS; sent += 100) await post('/v1/emails/batch', body, asTeam(team))
  const accepted = await walOf(place)
  const worker = await place.worker({ SMTP_URL: `smtp://127.0.0.1:${sink.port}?ignoreTLS=true` })
  await sink.until(MAILS)
  await sleep(2_000)
  await worker.stop()
  const [after, delivered] = [await bytesOf(place), await walOf(place)]
  await place.database.query(sql.unsafe`alter system reset checkpoint_timeout`)
  await place.database.query(sql.unsafe`select pg_reload_conf()`)
  await place.close()
  await sink.stop()
  const each = (key: keyof typeof after) => Math.round((after[key] - before[key]) / MAILS)
  const sum = each('rows') + each('indexes') + each('events') + each('jobs')
  const parts = `rows ${each('rows')}, indexes ${each('indexes')}, events ${each('events')}, jobs ${each('jobs')}`
  const weigh = (row: string, measure: string, ours: number, limit: number, note: string): Figure => ({
    row,
    measure,
    ours,
    reference: limit,
    unit: 'bytes',
    ratio: ours / limit,
    goal: `≤ ${limit / 1_024} KB`,
    met: ours <= limit,
    note,
  })
  const wal = (from: number, to: number) => Math.round((to - from) / MAILS)
  return [
    weigh('15a', 'disk space of a template email, accepted and delivered', sum, 2_048, parts),
    weigh(
      '15b',
      'its WAL',
      wal(started, delivered),
      4_096,
      `accepting ${wal(started, accepted)}, delivering ${wal(accepted, delivered)}`,
    ),
  ]
}
