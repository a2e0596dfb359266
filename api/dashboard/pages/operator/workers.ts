/** Tells which processes respond, and how to start a worker. Pure. */

import type { ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { SILENT_AFTER_S } from '../../../../db/stats/fleet/fleet.ts'
import { formatAge } from '../../components/cell.ts'
import type { Alert } from '../../components/section.ts'

export const isLive = ({ silent_seconds }: ProcessRow): boolean => silent_seconds <= SILENT_AFTER_S

export const isWorking = (process: ProcessRow): boolean => process.kind === 'worker' && isLive(process)

const START = 'node --import ./db/process/preload.js workers/main.ts'

/** Returns the alert for an installation without a running worker, or nothing. */
export function workerAlerts(processes: readonly ProcessRow[], now: Date): Alert[] {
  if (processes.some(isWorking)) return []
  const [last] = processes
    .filter(({ kind }) => kind === 'worker')
    .map(({ seen_at }) => seen_at)
    .sort()
    .slice(-1)
  const seen = last === undefined ? '' : `The last one responded ${formatAge(last, now)}. `
  return [
    {
      tone: 'bad',
      title: 'No worker is running',
      text: `${seen}Nothing is sent, and no report is processed. Start “worker” of the Procfile on your platform, or run: ${START}`,
      link: { href: '/operator/queues', label: 'Show queues' },
    },
  ]
}
