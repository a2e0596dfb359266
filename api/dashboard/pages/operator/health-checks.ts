/**
 * Checks of the service, one line each, with problems first. The page Health has all of them, the operator's
 * overview a summary. Pure.
 */

import type { ReturnPathCheck } from '../../../../db/accounts/domains/return-path.ts'
import type { lastReports } from '../../../../db/delivery/reports/reports.sql.ts'
import type { Check as SenderCheck } from '../../../../db/delivery/senders/check.ts'
import type { ShownSender } from '../../../../db/delivery/senders/show.ts'
import { plural } from '../../../../db/plural.ts'
import type { ProcessKind, ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { type Cell, number, text, time } from '../../components/cell.ts'
import type { Check, Section, SectionOf } from '../../components/section.ts'
import { compact } from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { senderState } from '../stopped.ts'
import { type DatabaseState, SAFETY_SETTINGS } from './database-state.ts'
import { providerName } from './report-reasons.ts'
import { isLive } from './workers.ts'

type Reports = Awaited<ReturnType<typeof lastReports>>

const ORDER: readonly Check['tone'][] = ['bad', 'warn', 'good', 'plain']

const problemsFirst = (checks: readonly Check[]): Check[] =>
  [...checks].sort((one, other) => ORDER.indexOf(one.tone) - ORDER.indexOf(other.tone))

export const buildChecklist = (
  title: string,
  checks: readonly Check[],
  more: Partial<SectionOf<'checklist'>> = {},
): Section => ({ empty: '', ...more, kind: 'checklist', title, checks })

const clockCheck = ({ isDrifting, drift_s }: DatabaseState): Check =>
  isDrifting
    ? { label: 'Clocks differ', cell: text(`${number(drift_s).text} s`), tone: 'bad' }
    : { label: 'Clocks agree', tone: 'good' }

export const databaseChecks = (state: DatabaseState): Check[] =>
  problemsFirst([
    { label: `PostgreSQL ${state.version}`, tone: state.fault === null ? 'good' : 'bad' },
    clockCheck(state),
    ...SAFETY_SETTINGS.map(
      (name): Check => ({
        label: name,
        cell: text(state.settings[name]),
        tone: state.off.includes(name) ? 'bad' : 'good',
      }),
    ),
  ])

const HOW_MANY = { web: 'web process', worker: 'worker' } as const

/** Returns lines for the processes of a kind: running, and not responding. */
function processesOfKind(processes: readonly ProcessRow[], kind: ProcessKind, now: Date): Check[] {
  const own = processes.filter((process) => process.kind === kind)
  const [live, silent] = [own.filter(isLive), own.filter((process) => !isLive(process))]
  return compact<Check>([
    live.length > 0
      ? { label: `${plural(live.length, HOW_MANY[kind])} running`, cell: seenCell(live, now), tone: 'good' }
      : kind === 'worker' && { label: 'No worker is running', tone: 'bad' },
    silent.length > 0 && {
      label: `${plural(silent.length, HOW_MANY[kind])} not responding`,
      detail: silent.map(({ host }) => host).join(', '),
      cell: seenCell(silent, now),
      tone: 'warn',
    },
  ])
}

/** Builds the cell with the latest heartbeat. */
const seenCell = (processes: readonly ProcessRow[], now: Date): Cell =>
  time(
    processes
      .map(({ seen_at }) => seen_at)
      .sort()
      .at(-1) ?? null,
    now,
  )

export const processChecks = (processes: readonly ProcessRow[], now: Date): Check[] =>
  problemsFirst([...processesOfKind(processes, 'worker', now), ...processesOfKind(processes, 'web', now)])

/**
 * @param found the result of a check, null if no worker has checked yet, and undefined without a check.
 * @param paused the relay if it is paused.
 * @param used the relay that running workers send through, if any.
 */
export function relayCheck(
  found: SenderCheck | null | undefined,
  paused: ShownSender | undefined,
  used?: string,
): Check {
  if (!found && paused)
    return {
      label: paused.key,
      detail: `${senderState(paused)}: ${paused.reason ?? 'no reason given'}`,
      tone: 'bad',
    }
  if (found === undefined && used !== undefined)
    return { label: used, detail: 'sends without problems, not checked yet', tone: 'good' }
  if (!found)
    return {
      label: 'Relay',
      detail: found === null ? 'no worker has checked it yet' : 'not checked yet',
      tone: 'plain',
    }
  const { sender, fault } = found
  return fault === null
    ? { label: sender, detail: 'passed the check', tone: 'good' }
    : { label: sender, detail: 'failed the check', tone: 'bad' }
}

const NO_RETURN_PATH: Check = {
  label: 'No return path',
  detail: 'RETURN_PATH_DOMAIN is not set. Bounces go to the mail server of each From domain.',
  tone: 'plain',
}

export const returnPathChecks = ({ domain, mx, spf, last_report_at }: ReturnPathCheck, now: Date): Check[] =>
  problemsFirst(
    compact<Check>([
      domain === null
        ? NO_RETURN_PATH
        : { label: 'Return path', detail: domain, tone: mx && spf ? 'good' : 'bad' },
      domain !== null && { label: 'MX', detail: mx?.join(', ') ?? 'missing', tone: mx ? 'good' : 'bad' },
      domain !== null && { label: 'SPF', detail: spf ?? 'missing', tone: spf ? 'good' : 'bad' },
      domain !== null && {
        label: 'Last bounce report',
        cell: time(last_report_at, now, 'none yet'),
        tone: last_report_at === null ? 'plain' : 'good',
      },
    ]),
  )

const heardChecks = (reports: Reports, now: Date): Check[] =>
  reports.flatMap(({ provider, last_at }): Check[] =>
    last_at === null
      ? []
      : [{ label: `Reports from ${providerName(provider)}`, cell: time(last_at, now), tone: 'good' }],
  )

/** Parked reports are counted up to this number. */
export const MAX_PARKED = 1_000

const parkedCheck = (parked: number): Check =>
  parked === 0
    ? { label: 'No parked reports', tone: 'good' }
    : {
        label: `${number(parked).text}${parked < MAX_PARKED ? '' : '+'} parked ${parked === 1 ? 'report' : 'reports'}`,
        tone: 'warn',
      }

export function reportChecks(reports: Reports, parked: number, now: Date): Check[] {
  const silent = reports
    .filter(({ provider, last_at }) => last_at === null && provider !== 'test')
    .map(({ provider }) => providerName(provider))
  return compact<Check>([
    parkedCheck(parked),
    ...heardChecks(reports, now),
    silent.length > 0 && { label: 'No reports yet', detail: silent.join(', '), tone: 'plain' },
  ])
}

export const settingChecks = (switches: PageDeps['switches']): Check[] =>
  problemsFirst(
    switches.map(({ name, isSet }) => ({
      label: name,
      cell: text(isSet ? 'set' : 'not set'),
      tone: isSet ? 'good' : 'plain',
    })),
  )

/** Summarizes the checks for the overview. */
export function summaryChecks(
  { returnDomain, switches }: PageDeps,
  state: DatabaseState,
  { reports, parked }: { reports: Reports; parked: number },
  now: Date,
): Check[] {
  const { version, off, fault } = state
  const unset = switches.filter(({ isSet }) => !isSet).map(({ name }) => name)
  return problemsFirst(
    compact<Check>([
      off.length === 0 && fault === null
        ? { label: `PostgreSQL ${version}`, detail: 'crash-safe settings', tone: 'good' }
        : { label: `PostgreSQL ${version}`, detail: fault ?? `${off.join(', ')} off`, tone: 'bad' },
      clockCheck(state),
      parkedCheck(parked),
      ...heardChecks(reports, now),
      returnDomain === null ? NO_RETURN_PATH : { label: 'Return path', detail: returnDomain, tone: 'good' },
      unset.length > 0 && { label: 'Optional settings not set', detail: unset.join(', '), tone: 'plain' },
    ]),
  )
}
