/** Tells which processes respond and have different versions, and how to start a worker. Pure. */

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

/** Until then, different versions are part of a deployment. */
const DEPLOYMENT_S = 600

/** Returns the alert for processes that have had different versions for longer than a deployment, or nothing. */
export function versionAlerts(processes: readonly ProcessRow[], now: Date): Alert[] {
  const isStarted = ({ started_at }: ProcessRow) =>
    now.getTime() - Date.parse(started_at) > DEPLOYMENT_S * 1_000
  const settled = processes.filter((process) => isLive(process) && isStarted(process))
  const versions = new Set(settled.flatMap(({ gauges: { version } }) => version || []))
  if (versions.size < 2) return []
  const newestFirst = [...versions].sort((one, other) => other.localeCompare(one, 'en', { numeric: true }))
  const words = new Intl.ListFormat('en').format(newestFirst)
  return [{ tone: 'warn', title: `Processes run ${words}`, text: 'Finish the deployment.' }]
}
