/** Checks the database: version, clock and settings for crash safety. */

import type { Tx } from '../../../../db/postgres/pool.ts'
import { serverClock, serverSettings } from '../../../../db/schema.sql.ts'
import { databaseFault } from '../../../../db/start.ts'
import { headed } from '../../components/cell.ts'
import type { Alert } from '../../components/section.ts'
import { compact } from '../../server/builders.ts'

/** Difference between the clocks of this process and the database that causes an alert, in seconds. */
const MAX_CLOCK_DRIFT_S = 2

export const SAFETY_SETTINGS = ['fsync', 'full_page_writes', 'synchronous_commit'] as const

const list = new Intl.ListFormat('en')

export type DatabaseState = Awaited<ReturnType<typeof databaseState>>

export async function databaseState(tx: Tx) {
  const { version, at } = await serverClock(tx)
  // The clock of this process, which IDs and OpenID tokens depend on.
  const now = new Date()
  const settings = await serverSettings(tx)
  const drift_s = Math.round(Math.abs(Date.parse(at) - now.getTime()) / 1_000)
  return {
    // Without the distribution's own version.
    version: version.split(' ', 1)[0] ?? '',
    settings,
    drift_s,
    isDrifting: drift_s > MAX_CLOCK_DRIFT_S,
    off: SAFETY_SETTINGS.filter((name) => settings[name] === 'off'),
    fault: await databaseFault(tx),
  }
}

export const faultAlerts = ({ fault }: DatabaseState): Alert[] =>
  fault === null ? [] : [{ tone: 'bad', title: 'The database can’t be used', text: headed(fault) }]

export const riskAlerts = ({ off, isDrifting, drift_s }: DatabaseState): Alert[] =>
  compact([
    off.length > 0 && {
      tone: 'bad',
      title: 'A crash of the database can lose accepted messages',
      text: `${list.format(off)} ${off.length === 1 ? 'is' : 'are'} off. Set ${off.length === 1 ? 'it' : 'them'} to on in postgresql.conf, and reload PostgreSQL.`,
    },
    isDrifting && {
      tone: 'warn',
      title: `This process’s clock differs from the database’s by ${drift_s} seconds`,
      text: 'Synchronize the clocks of both hosts with NTP.',
    },
  ])
