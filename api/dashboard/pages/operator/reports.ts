/** Lists parked provider reports with the reason, and replays or drops one or all. */

import { dropParked, readReport, replayParked } from '../../../../db/delivery/reports/replay.ts'
import {
  HEAD_BYTES,
  type ParkedFilter,
  PROVIDERS,
  parkedByReason,
  parkedReports,
  type ReportRow,
  reportHeads,
} from '../../../../db/delivery/reports/reports.sql.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { seenNow } from '../../../../db/postgres/snapshot.sql.ts'
import { byteWords, type Cell, headed, number, status, text, time } from '../../components/cell.ts'
import type { Form } from '../../components/section.ts'
import { asActor } from '../../server/action.ts'
import { noneLeft } from '../../server/already.ts'
import {
  action,
  buildFacts,
  buildTable,
  button,
  buttonCell,
  compact,
  get,
  hidden,
} from '../../server/builders.ts'
import { type Counted, countedFields, countedValues, readCounted } from '../../server/confirmed-count.ts'
import { defineChoice, defineFilter, search } from '../../server/filter.ts'
import { addressWith, idParam, pageById, queryParam } from '../../server/list.ts'
import { type PersonRequest, redirect, show } from '../../server/page.ts'
import { summarizeReport } from './report-content.ts'
import {
  REPORTS_PATH as PATH,
  providerName,
  reasonWords,
  remedyFor,
  reportPath,
  storedReason,
} from './report-reasons.ts'

/** Maximum length of a body shown. The CLI prints all of it. */
const RAW_CHARACTERS_SHOWN = 20_000

const PROVIDER_OPTIONS = [
  { value: '', label: 'any' },
  ...PROVIDERS.map((provider) => ({ value: provider, label: headed(providerName(provider)) })),
]

const filter = defineFilter({
  reason: search('Reason contains'),
  provider: defineChoice('From', PROVIDERS, { options: PROVIDER_OPTIONS }),
})

/** Reads the filter. A sentence finds its stored reason. */
function readFilter(query: URLSearchParams) {
  const { reason, ...rest } = filter.read(query)
  return { ...rest, reason: storedReason(reason) }
}

const countWords = ({ most }: Pick<Counted, 'most'>): string =>
  most === 1 ? '1 report' : `all ${plural(most, 'report')}`

/** Builds a button for all parked reports that match the filter now. */
function onAll(
  verb: 'replay' | 'drop',
  { query }: Pick<PersonRequest, 'query'>,
  counted: Counted,
  more: Partial<Form>,
): Form {
  const many = countWords(counted)
  const action = addressWith({ path: `${PATH}/${verb}`, query: filter.set(query) }, {})
  return button(action, verb === 'replay' ? `Replay ${many}` : `Drop ${many}`, {
    fields: [
      ...filter.names.map((name) => hidden(name, queryParam(query, name) ?? '')),
      ...countedFields(counted),
    ],
    ...more,
  })
}

type Reason = { reason: string; reports: number }

/** Returns the buttons for all reports. The next step is outside the menu if it is the same for each of them. */
function actionsOnAll(request: PersonRequest, reasons: readonly Reason[], seen: string): Form[] {
  const most = reasons.reduce((sum, { reports: count }) => sum + count, 0)
  if (most === 0) return []
  const helped = reasons.filter(({ reason }) => remedyFor(reason).isReplayable).length
  // With several reasons, each has its own button.
  const isNext = helped === 0 && reasons.length === 1
  return [
    onAll('replay', request, { most, seen }, { menu: helped < reasons.length }),
    onAll('drop', request, { most, seen }, { tone: 'danger', menu: isNext ? false : undefined }),
  ]
}

const leadFor = ([first, ...others]: readonly Reason[]): string =>
  first && others.length === 0
    ? `All have the same reason: ${reasonWords(first.reason)}. ${remedyFor(first.reason).advice}`
    : 'Provider reports that couldn’t be read, or whose message wasn’t found within an hour.'

/** Returns the path of the reports with a reason, whose buttons are for those. */
const reasonPath = ({ query }: PersonRequest, reason: string): string =>
  addressWith({ path: PATH, query: filter.set(query) }, { reason })

/** Builds the button with the next step for the reports with a reason. */
function reasonButton({ query }: PersonRequest, { reason, reports: most }: Reason, seen: string): Cell {
  const { isReplayable } = remedyFor(reason)
  const verb = isReplayable ? 'replay' : 'drop'
  const set = Object.fromEntries(filter.set(query))
  return buttonCell(`${PATH}/${verb}`, `${headed(verb)} ${plural(most, 'report')}`, {
    tone: isReplayable ? 'quiet' : 'danger',
    sends: { ...set, reason, ...countedValues({ most, seen }) },
  })
}

const reasonsTable = (
  request: PersonRequest,
  reasons: readonly Reason[],
  { isFiltered, seen }: { isFiltered: boolean; seen: string },
) =>
  buildTable(
    reasons,
    (each) => ({
      Reason: text(reasonWords(each.reason), {
        href: reasonPath(request, each.reason),
        detail: remedyFor(each.reason).advice,
      }),
      Reports: number(each.reports),
      '': reasonButton(request, each, seen),
    }),
    {
      id: 'reasons',
      title: 'Reasons',
      wrap: ['Reason'],
      empty: isFiltered
        ? 'No report matches.'
        : 'No parked reports. All reports of providers were processed.',
    },
  )

/** Builds the columns of a report. The addresses are only on its own page, because the audit log records its views. */
function reportColumns({ id, received_at, provider, reason, bytes }: ReportRow, head: Buffer, now: Date) {
  const summary = summarizeReport(head)
  const name = providerName(provider)
  return {
    Report: text(summary ?? name, {
      href: reportPath(id),
      detail: summary === null ? byteWords(bytes) : name,
    }),
    Reason: text(reasonWords(reason)),
    Received: time(received_at, now),
  }
}

const reports = get('operator', PATH, async (request, { database }) => {
  const { query, now } = request
  const asked = readFilter(query)
  const seen = await seenNow(database)
  const page = await pageById(request, ({ before: after, limit }) =>
    parkedReports(database, { ...asked, after, limit }),
  )
  const reasons = await parkedByReason(database, asked)
  const heads = await reportHeads(
    database,
    page.rows.map(({ id }) => id),
  )
  const isFiltered = filter.set(query).size > 0
  const hasReports = reasons.length > 0
  return show({
    title: 'Parked reports',
    lead: leadFor(reasons),
    actions: { forms: actionsOnAll(request, reasons, seen) },
    sections: compact([
      !hasReports && isFiltered && filter.shown(request),
      (!isFiltered || reasons.length !== 1) && reasonsTable(request, reasons, { isFiltered, seen }),
      hasReports && filter.shown(request).map((section) => ({ ...section, title: 'Reports' })),
      hasReports &&
        buildTable(page.rows, (row) => reportColumns(row, heads.get(row.id) ?? Buffer.alloc(0), now), {
          grow: ['Reason'],
          empty: '',
          next: page.next,
        }),
    ]),
  })
})

const report = get('operator', `${PATH}/:report_id`, async (request, deps) => {
  const { params, now } = request
  const found = await asActor(request, deps, (by) => readReport(by, params.report_id))
  const { id, provider, received_at, state, reason, body, bytes } = found
  const { isReplayable, advice } = remedyFor(reason)
  const fields = [hidden('id', id)]
  const forms = [
    button(`${PATH}/replay`, 'Replay report', { fields, menu: !isReplayable }),
    button(`${PATH}/drop`, 'Drop report', { fields, tone: 'danger', menu: isReplayable ? undefined : false }),
  ]
  const summary = summarizeReport(Buffer.from(body).subarray(0, HEAD_BYTES))
  return show({
    title: summary === null ? `Report from ${providerName(provider)}` : `Report about ${summary}`,
    state: status(state, state === 'parked' ? { tone: 'warn' } : {}),
    lead: state === 'parked' ? `${reasonWords(reason) ?? 'No reason'}. ${advice}` : undefined,
    back: { href: PATH, label: 'Parked reports' },
    actions: { forms: state === 'parked' ? forms : [] },
    sections: [{ kind: 'code', title: 'Raw report', code: body.slice(0, RAW_CHARACTERS_SHOWN) }],
    aside: [
      buildFacts({
        Provider: text(providerName(provider)),
        Received: time(received_at, now),
        Size: text(byteWords(bytes)),
        ID: text(id, { code: true, copy: true }),
      }),
    ],
  })
})

/** Reads a form: a single report, or the counted reports that match the filter. @throws RequestError bad_request. */
function parseReportFilter(form: URLSearchParams): ParkedFilter {
  const id = idParam(form, 'id')
  if (id !== undefined) return { ids: [id] }
  return { ...readFilter(form), ...readCounted(form) }
}

/** Describes the parked reports of a form. @throws RequestError without any. */
async function countParked(form: URLSearchParams, tx: Tx): Promise<string> {
  const wanted = parseReportFilter(form)
  const reasons = await parkedByReason(tx, wanted)
  const most = reasons.reduce((sum, { reports: count }) => sum + count, 0)
  if (most === 0) throw noneLeft()
  return countWords({ most: Math.min(most, wanted.most ?? most) })
}

const replay = action('operator', `${PATH}/replay`, async (by, request) => {
  const filter = parseReportFilter(request.form)
  const { replayed } = await replayParked(by, by.queue, filter)
  return redirect(PATH, `${plural(replayed, 'report')} will be replayed.`)
}).confirm(async ({ form }, { database }) => {
  if (form.has('id')) return null
  const many = await countParked(form, database)
  return { question: `Replay ${many}?`, answer: `Replay ${many}` }
})

const drop = action('operator', `${PATH}/drop`, async (by, request) => {
  const filter = parseReportFilter(request.form)
  const { dropped } = await dropParked(by, filter)
  return redirect(PATH, `${plural(dropped, 'report')} dropped.`)
}).confirm(async ({ form }, { database }) => {
  const many = await countParked(form, database)
  if (form.has('id')) return { question: 'Drop this report?', answer: 'Drop report', tone: 'danger' }
  return { question: `Drop ${many}?`, answer: `Drop ${many}`, tone: 'danger' }
})

export const reportPages = [reports, report, replay, drop]
