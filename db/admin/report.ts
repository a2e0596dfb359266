/** Verbs of `report`: what providers have reported, raw. */
import { Refusal } from '../errors.ts'
import { dropReport, replayReport, showReport } from '../reports/replay.ts'
import { REPORT_STATES, type ReportState, reportsByState } from '../reports/reports.sql.ts'
import { oneOf, positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 1_000

type ListOptions = { parked?: boolean; state?: ReportState; limit: number }

/** The state that both flags ask for, if any. @throws Refusal bad_request when they contradict each other. */
function stateOf({ parked = false, state }: ListOptions): ReportState | undefined {
  if (!parked) return state
  if (state === undefined || state === 'parked') return 'parked'
  throw new Refusal('bad_request', `--parked and --state ${state} contradict each other: leave one out`)
}

export const verbs: Verbs = (report, admin) => {
  report
    .command('list')
    .description('reports, newest first, without their bytes')
    .option('--parked', 'only those that could not be read, or whose message was not found')
    .option('--state <state>', `only these: ${REPORT_STATES.join(', ')}`, oneOf(REPORT_STATES))
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(async (options: ListOptions) => {
        const state = stateOf(options)
        return reportsByState(await admin.database(), { state, limit: options.limit })
      }),
    )

  report
    .command('show')
    .description('a report with its bytes as text')
    .argument('<id>', 'id of the report', uuid)
    .action(answer(async (id: string) => showReport(await admin.database(), id)))

  report
    .command('replay')
    .description('ingest a report again, after whatever was in its way is gone')
    .argument('<id>', 'id of the report', uuid)
    .action(
      answer(
        async (id: string) =>
          await admin.transaction(async (at) => replayReport(at, await admin.queue(), id)),
      ),
    )

  report
    .command('drop')
    .description('remove a parked report, once nothing more is to be learnt from it')
    .argument('<id>', 'id of the report', uuid)
    .action(answer((id: string) => admin.transaction(({ tx }) => dropReport(tx, id))))
}
