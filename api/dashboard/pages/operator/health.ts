/** Whether the service can work: database, processes, providers' reports, settings. Looked at afresh each time. */

import { lastHeard } from '../../../../db/delivery/reports/reports.sql.ts'
import { checkFound, requestCheck } from '../../../../db/delivery/senders/check.ts'
import { listSenders, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { liveProcesses, type ProcessRow } from '../../../../db/figures/fleet/fleet.sql.ts'
import { FORGOTTEN, SILENCE } from '../../../../db/figures/fleet/fleet.ts'
import { stoppedBroadcasts } from '../../../../db/messages/broadcasts/brakes.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { pausedQueues, type QueuePause, RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { serverClock, serverSettings } from '../../../../db/schema.sql.ts'
import { databaseFault } from '../../../../db/start.ts'
import { isUuid } from '../../../../db/text/strings.ts'
import { type Cell, status, text, time } from '../../drawn/cell.ts'
import type { Alert, Section } from '../../drawn/section.ts'
import { pausedQueue, RESTORED_COPY } from '../../drawn/timeline.ts'
import { act, get, press, some, tableOf } from '../../served/made.ts'
import { redirect, show } from '../../served/page.ts'
import { folded, stoppedAlerts } from '../stopped.ts'

const PATH = '/operator/health'
/** How far this process's clock may be from the database's before it is worth a word, in seconds. */
const CLOCK_APART = 2
/** The most broadcasts that are named. */
const STOPPED = 100

const DANGEROUS = ['fsync', 'full_page_writes', 'synchronous_commit'] as const

async function databaseFacts(tx: Tx, now: Date) {
  const { version, at } = await serverClock(tx)
  const settings = await serverSettings(tx)
  const fault = await databaseFault(tx)
  const apart = Math.round(Math.abs(Date.parse(at) - now.getTime()) / 1_000)
  const off = DANGEROUS.filter((name) => settings[name] === 'off')
  const alerts: Alert[] = some([
    fault !== null && { tone: 'bad', title: 'The database cannot be worked with', text: fault },
    ...off.map(
      (name): Alert => ({
        tone: 'bad',
        title: `${name} is off`,
        text: 'A crash of the database can lose what was accepted.',
      }),
    ),
    apart > CLOCK_APART && {
      tone: 'warn',
      title: `This process’s clock is ${apart} seconds from the database’s`,
    },
  ])
  const facts = [
    { label: 'PostgreSQL', cell: text(version) },
    { label: 'Its clock', cell: { ...time(at, now), age: `${apart} s from this process’s` } },
    ...DANGEROUS.map((name) => ({
      label: name,
      cell: status(settings[name], { tone: off.includes(name) ? 'bad' : 'good' }),
    })),
  ]
  return { alerts, facts }
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`

const processShown =
  (now: Date) =>
  ({ kind, host, pid, queues, gauges, seen_at, silent_seconds }: ProcessRow): Record<string, Cell> => ({
    Process: text(kind, { detail: `${host}, ${pid}` }),
    Queues: text(queues.join(', ') || null),
    Busy: text(`${Math.round(gauges.busy * 100)} %`, { number: true }),
    Memory: text(megabytes(gauges.resident_memory_bytes), { number: true }),
    Lag: text(`${Math.round(gauges.event_loop_lag_seconds * 1_000)} ms`, { number: true }),
    'Last sign of life': {
      ...time(seen_at, now),
      ...(silent_seconds > SILENCE ? { tone: 'bad' } : {}),
    },
  })

function processAlerts(processes: readonly ProcessRow[]): Alert[] {
  const workers = processes.filter(
    ({ kind, silent_seconds }) => kind === 'worker' && silent_seconds <= SILENCE,
  )
  if (workers.length > 0) return []
  return [
    {
      tone: 'bad',
      title: 'No worker is running',
      text: 'Nothing is sent, and no report is taken in. Start one: the Procfile’s worker line.',
    },
  ]
}

/** A sender that a live worker delivers through, and cannot: as the workers' own tries found it. */
function senderAlerts(senders: readonly ShownSender[]): Alert[] {
  return senders
    .filter(({ state }) => state === 'paused' || state === 'probing')
    .map(({ key, reason }) => ({
      tone: 'bad',
      title: `${key} takes nothing`,
      text: reason ?? 'It gave no reason.',
      link: { href: '/operator/senders', label: 'What happened, and how to resume' },
    }))
}

/** Queues that somebody paused, and perhaps forgot; in one alert those of a copy of the database. */
function queueAlerts(paused: ReadonlyMap<string, QueuePause>): Alert[] {
  const all = [...paused.values()]
  const others = all.filter(({ reason }) => reason !== RESTORED)
  const link = { href: '/operator/queues', label: 'Queues, and how to resume it' }
  return some([
    others.length < all.length && { ...RESTORED_COPY, link },
    ...others.map(({ queue, reason }) => ({ ...pausedQueue(queue, reason), link })),
  ])
}

/** Each sender that live workers deliver through, with how it stands. */
function senderFacts(processes: readonly ProcessRow[], senders: readonly ShownSender[], now: Date) {
  const live = processes.filter(({ silent_seconds }) => silent_seconds <= SILENCE)
  const keys = [...new Set(live.flatMap(({ senders: used }) => Object.values(used)))].sort()
  return keys.map((key) => {
    const known = senders.find((sender) => sender.key === key)
    const since = known?.troubled_at ? { detail: `last trouble ${time(known.troubled_at, now).age}` } : {}
    return {
      label: key,
      cell: known ? status(known.state, since) : status('no trouble yet', { tone: 'good' }),
    }
  })
}

/** What a worker has found out about email's provider, if somebody has asked. */
async function checkSection(tx: Tx, id: string | null): Promise<Section> {
  const found = id !== null && isUuid(id) ? await checkFound(tx, id) : null
  const facts =
    found === null
      ? [{ label: 'Provider', cell: text(id === null ? 'not asked just now' : 'no worker has asked it yet') }]
      : [
          {
            label: found.sender,
            cell: found.fault
              ? status('takes nothing', { tone: 'bad', detail: found.fault })
              : status('reached, and it lets us in', { tone: 'good' }),
          },
        ]
  return { kind: 'facts', title: 'Email, asked by a worker', id: 'check', live: id !== null && !found, facts }
}

const check = act('operator', `${PATH}/check`, async (by) => {
  const id = await requestCheck(by)
  return redirect(`${PATH}?check=${id}`)
})

const health = get('operator', PATH, async ({ now, query }, { database, switches }) => {
  const { alerts, facts } = await databaseFacts(database, now)
  const processes = await liveProcesses(database, FORGOTTEN)
  const heard = await lastHeard(database)
  const senders = await listSenders(database)
  const paused = await pausedQueues(database)
  const stopped = stoppedAlerts(await stoppedBroadcasts(database, null, STOPPED), true)
  const used = senderFacts(processes, senders, now)
  const sections: Section[] = some([
    {
      kind: 'alerts',
      alerts: [
        ...alerts,
        ...processAlerts(processes),
        ...queueAlerts(paused),
        ...senderAlerts(senders),
        ...folded(stopped, `${stopped.length} broadcasts have paused themselves`),
      ],
      calm: 'All checks passed.',
    },
    tableOf(processes, processShown(now), {
      title: 'Processes',
      id: 'processes',
      live: true,
      empty: 'No process has given a sign of life within an hour.',
    }),
    used.length !== 0 && { kind: 'facts', title: 'Senders, as the workers find them', facts: used },
    await checkSection(database, query.get('check')),
  ])
  const aside: Section[] = [
    { kind: 'facts', title: 'Database', facts },
    {
      kind: 'facts',
      title: 'Hooks last heard from',
      facts: heard.map(({ provider, heard_at }) => ({ label: provider, cell: time(heard_at, now) })),
    },
    {
      kind: 'facts',
      title: 'Settings of this web process',
      facts: switches.map(({ name, isSet }) => ({
        label: name,
        cell: status(isSet ? 'set' : 'not set', { tone: isSet ? 'good' : 'plain' }),
      })),
    },
  ]
  return show({
    title: 'Health',
    actions: {
      kind: 'actions',
      forms: [
        { action: PATH, method: 'get', fields: [], submit: 'Look again', tone: 'quiet' },
        press(`${PATH}/check`, 'Check email now', { tone: 'quiet' }),
      ],
    },
    sections,
    aside,
  })
})

export const healthPages = [health, check]
