/** Checks on the operator's overview, one line each. The page Health has the details. */

import { lastReports } from '../../../../db/delivery/reports/reports.sql.ts'
import { text, time } from '../../components/cell.ts'
import type { Check } from '../../components/section.ts'
import { compact } from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { databaseState } from './database-state.ts'

/** Checks the database, its clock, the providers' reports and the settings. Contacts no other server. */
export async function healthChecks(
  { database, returnDomain, switches }: PageDeps,
  now: Date,
): Promise<Check[]> {
  const { version, off, fault, drift_s, isDrifting } = await databaseState(database)
  const reports = await lastReports(database)
  const unset = switches.filter(({ isSet }) => !isSet).map(({ name }) => name)
  return compact<Check>([
    off.length === 0 && fault === null
      ? { label: `PostgreSQL ${version}`, detail: 'crash-safe settings', tone: 'good' }
      : { label: `PostgreSQL ${version}`, detail: fault ?? `${off.join(', ')} off`, tone: 'bad' },
    isDrifting
      ? { label: 'Clocks differ', cell: text(`${drift_s} s`), tone: 'bad' }
      : { label: 'Clocks agree', tone: 'good' },
    ...reports.map(
      ({ provider, last_at }): Check | false =>
        last_at !== null && { label: `Reports from ${provider}`, cell: time(last_at, now), tone: 'good' },
    ),
    returnDomain === null
      ? { label: 'No return path', detail: 'RETURN_PATH_DOMAIN', tone: 'plain' }
      : { label: 'Return path', detail: returnDomain, tone: 'good' },
    unset.length > 0 && { label: 'Optional settings not set', detail: unset.join(', '), tone: 'plain' },
  ])
}
