/** Verbs of `report`: raw reports from providers. */

import type { Command } from 'commander'
import { dropParked, dropReport, replayParked, replayReport, showReport } from '../delivery/reports/replay.ts'
import {
  type ParkedFilter,
  PROVIDERS,
  parkedReports,
  REPORT_STATES,
  type ReportState,
  reportsByState,
} from '../delivery/reports/reports.sql.ts'
import { RequestError, requestError } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import { atMost, instant, oneOf, only, uuidArgument, words } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

type ListOptions = { parked?: boolean; state?: ReportState; limit: number }

/**
 * Returns the state that the flags select, if any. @throws RequestError bad_request if they contradict each other.
 */
function toState({ parked = false, state }: ListOptions): ReportState | undefined {
  if (!parked) return state
  if (state === undefined || state === 'parked') return 'parked'
  throw requestError('bad_request', TEXTS.parkedAndState, { state })
}

type ManyOptions = Pick<ParkedFilter, 'provider' | 'reason' | 'before'> & { parked?: boolean }
type DropOptions = ManyOptions & { dryRun?: boolean }

/** Adds the arguments of a verb for one report, several, or all parked ones. */
const forMany = (verb: Command): Command =>
  verb
    .argument('[ids...]', 'IDs of reports (leave out with --parked)', (id, ids: string[] = []) => [
      ...ids,
      uuidArgument(id),
    ])
    .option(
      '--parked',
      'all parked reports (unreadable, or without a matching message), or those that match the options below',
    )
    .option(
      '--provider <provider>',
      `only reports of this provider (choices: ${PROVIDERS.join(', ')})`,
      oneOf(PROVIDERS),
    )
    .option('--reason <words>', 'only reports parked for a reason that contains this text', words)
    .option('--before <time>', 'only reports received before this time', instant)

/** Returns the ID of a single report, or a filter. @throws RequestError bad_request if nothing is selected. */
function toSelection(
  ids: readonly string[] = [],
  { parked = false, ...filter }: ManyOptions,
): string | ParkedFilter {
  if (parked === ids.length > 0) throw new RequestError('bad_request', TEXTS.whichReports)
  if (!parked && Object.keys(filter).length > 0) {
    throw new RequestError('bad_request', TEXTS.filterWithoutParked)
  }
  const [only = '', ...others] = ids
  if (parked) return filter
  return others.length === 0 ? only : { ids }
}

/** Lists the reports that would be deleted, which are the parked ones. */
async function droppable(tx: Tx, which: string | ParkedFilter) {
  const filter = typeof which === 'string' ? { ids: [which] } : which
  const found = await parkedReports(tx, { ...filter, limit: null })
  return { dropped: found.length, dry_run: true, ids: found.map(({ id }) => id) }
}

export const verbs: Verbs = ({ verb, look, admin }) => {
  verb('list', 'List reports, newest first, without their content')
    .option('--parked', 'only reports that could not be read, or whose message was not found')
    .option('--state <state>', ...only(REPORT_STATES))
    .option('--limit <n>', ...atMost(1_000))
    .action(
      answer(async (options: ListOptions) => {
        const state = toState(options)
        return reportsByState(await admin.database(), { state, limit: options.limit })
      }),
    )

  verb('show ID', 'Show a report and its content as text').action(look(showReport))

  forMany(verb('replay', 'Process reports again, after the cause of the failure is fixed')).action(
    answer(async (ids: string[] | undefined, options: ManyOptions): Promise<object> => {
      const which = toSelection(ids, options)
      const queue = await admin.queue()
      return admin.transaction<object>((by) =>
        typeof which === 'string' ? replayReport(by, queue, which) : replayParked(by, queue, which),
      )
    }),
  )

  forMany(verb('drop', 'Delete parked reports that are no longer needed'))
    .option('--dry-run', 'change nothing, only list the reports')
    .action(
      answer(
        async (ids: string[] | undefined, { dryRun = false, ...options }: DropOptions): Promise<object> => {
          const which = toSelection(ids, options)
          if (dryRun) return droppable(await admin.database(), which)
          return admin.transaction<object>((by) =>
            typeof which === 'string' ? dropReport(by, which) : dropParked(by, which),
          )
        },
      ),
    )
}
