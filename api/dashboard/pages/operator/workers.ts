/** Finds out whether a worker is running. Pure. */

import type { ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { SILENT_AFTER_S } from '../../../../db/stats/fleet/fleet.ts'
import type { Alert } from '../../components/section.ts'

export const isLive = ({ silent_seconds }: ProcessRow): boolean => silent_seconds <= SILENT_AFTER_S

export const isWorking = (process: ProcessRow): boolean => process.kind === 'worker' && isLive(process)

/** Returns the alert for an installation without a running worker, or nothing. */
export const workerAlerts = (processes: readonly ProcessRow[]): Alert[] =>
  processes.some(isWorking)
    ? []
    : [
        {
          tone: 'bad',
          title: 'No worker is running',
          text: 'Nothing is sent, and no report is processed. Start a worker.',
        },
      ]
