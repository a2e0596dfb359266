/** Lists the queues, with the idle ones below. */

import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import { listQueues, type ShownQueue, withParts } from '../../../../db/delivery/queues.ts'
import { listSenders, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { resumeRestored } from '../../../../db/maintenance/restore-guard/restored.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { keysWithJobs } from '../../../../db/queue/jobs.sql.ts'
import { pausedQueues, RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { liveProcesses } from '../../../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, number, text } from '../../components/cell.ts'
import type { Alert, Form } from '../../components/section.ts'
import { RESTORED_COPY } from '../../components/timeline.ts'
import { already } from '../../server/already.ts'
import { action, buildAlerts, buildTable, button, buttonCell, compact, get } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'
import { isPaused } from '../stopped.ts'
import {
  isShown,
  nameCell,
  oldestDue,
  QUEUES_PATH,
  queueCells,
  rate,
  waitAlerts,
  workAlerts,
  workersCell,
} from './queue-cells.ts'

const RESUME_ALL: Form = button(`${QUEUES_PATH}/restored`, 'Resume all')

const pauseCell = ({ queue, paused }: ShownQueue): Cell =>
  paused
    ? buttonCell(`${QUEUES_PATH}/${queue}/resume`, 'Resume queue')
    : buttonCell(`${QUEUES_PATH}/${queue}/pause`, 'Pause queue', { tone: 'quiet' })

/** Removes a link to this page. */
const withoutSelf = (alert: Alert): Alert =>
  alert.link?.href === QUEUES_PATH ? { ...alert, link: undefined } : alert

/** Returns the paused senders for which jobs wait. */
async function loadAwaited(tx: Tx, senders: readonly ShownSender[]): Promise<ShownSender[]> {
  const paused = senders.filter(isPaused)
  const places = paused.flatMap(({ key, name }) => {
    const { channel, group } = deliveryOfSender(key, name)
    return withParts(channel.job).map((job) => ({ key, job, grouped_by: group }))
  })
  const awaited = new Set(await keysWithJobs(tx, places))
  return paused.filter(({ key }) => awaited.has(key))
}

const list = get('operator', QUEUES_PATH, async ({ now }, { database }) => {
  const rows = await listQueues(database)
  const isCopy = rows.some(({ pause_reason }) => pause_reason === RESTORED)
  const senders = await listSenders(database)
  const processes = await liveProcesses(database, LISTED_FOR_S)
  const alerts = buildAlerts(
    [
      ...workAlerts(processes, rows, now).map(withoutSelf),
      isCopy && RESTORED_COPY,
      ...waitAlerts(await loadAwaited(database, senders), now),
    ],
    { id: 'needs' },
  )
  const [shown, idle] = [rows.filter(isShown), rows.filter((queue) => !isShown(queue))]
  const cells = queueCells(now, senders)
  return show({
    title: 'Queues',
    actions: isCopy ? { forms: [RESUME_ALL] } : undefined,
    lead: 'Deferred jobs wait for their next attempt. Failed jobs need manual action.',
    sections: compact([
      alerts,
      buildTable(
        shown,
        (queue) => {
          // The age of the oldest job has its own column.
          const { Queue, Waiting, ...others } = cells({ ...queue, oldest_ready_seconds: null })
          return {
            ...{ Queue, Waiting, 'Oldest due': text(oldestDue(queue), { number: true }), ...others },
            Active: number(queue.active),
            Workers: workersCell(queue, now),
            '': pauseCell(queue),
          }
        },
        { id: 'queues', live: true, empty: '' },
      ),
      idle.length > 0 &&
        buildTable(
          idle,
          (queue) => ({
            Queue: nameCell(queue, now),
            Rate: text(rate(queue.completed_per_second), { number: true }),
            Workers: workersCell(queue, now),
          }),
          { title: `${plural(idle.length, 'idle queue')}`, id: 'idle', fold: true, empty: '' },
        ),
    ]),
  })
})

const resumeCopy = action('operator', `${QUEUES_PATH}/restored`, async (by) => {
  const { queues: resumed, broadcasts } = await resumeRestored(by)
  return redirect(
    QUEUES_PATH,
    `${plural(resumed.length, 'queue')} and ${plural(broadcasts, 'broadcast')} resumed.`,
  )
}).confirm(async (_request, { database }) => {
  const pauses = [...(await pausedQueues(database)).values()]
  if (pauses.every(({ reason }) => reason !== RESTORED)) throw already('Everything', 'resumed')
  return {
    question:
      'Resume everything paused by the restore? Queued messages will be sent, and some may already have been sent before the backup was restored.',
    answer: 'Resume all',
  }
})

export const queuesPages = [list, resumeCopy]
