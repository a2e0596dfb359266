/**
 * Lists as CSV (RFC 4180), streamed row by row.
 * Promises: no piece of a line is a formula, however a spreadsheet splits it (db/validation/formulas.ts); imports undo
 * that. The file begins with a byte order
 * mark: Excel reads UTF-8 as such only then. The first rows are read before anything is answered, so that what cannot
 * be listed is a page that says so, not a file that breaks off. It does break off once its reader's session is over, or
 * they have left the team.
 */

import { Readable } from 'node:stream'
import { sessionOpens } from '../../../db/accounts/members/sessions.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { guardFormulas } from '../../../db/validation/formulas.ts'
import { typedOf, zoneOf } from '../components/zone.ts'
import { TEXTS } from '../texts.ts'
import { auditRead } from './action.ts'
import { fromReplica, get } from './builders.ts'
import type { PageDeps } from './deps.ts'
import type { defineFilter } from './filter.ts'
import { type RowReader, readBy } from './list.ts'
import { type PageAnswer, raw, type TeamPage, type TeamRequest } from './page.ts'

type Value = string | null | undefined
type Filter = Pick<ReturnType<typeof defineFilter>, 'only' | 'set'>

function csvCell(value: string): string {
  const guarded = guardFormulas(value)
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

const csvLine = (cells: readonly Value[]): string =>
  `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\r\n`

const BYTE_ORDER_MARK = '\uFEFF'

/** A file of rows as they come, named with the reader's time. @throws whatever keeps the first row from being read. */
export async function csvFile(
  { cookies, now }: Pick<TeamRequest, 'cookies' | 'now'>,
  name: string,
  header: readonly string[],
  rows: AsyncGenerator<readonly Value[]>,
): Promise<PageAnswer> {
  const first = await rows.next()
  async function* lines() {
    yield BYTE_ORDER_MARK + csvLine(header)
    if (first.done) return
    yield csvLine(first.value)
    for await (const row of rows) yield csvLine(row)
  }
  const time = typedOf(now.toISOString(), zoneOf(cookies('zone')))
    .replace('T', '-')
    .replace(':', '')
  const headers = {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="${name}-${time}.csv"`,
  }
  return raw(headers, Readable.from(lines()))
}

const EXPORT_BATCH = 500

/** All rows of a list, by batches, until one is short and nothing says that there are more. */
async function* rowsBy<R>(read: RowReader<R>, keyOf: (row: R) => string) {
  for (let before: string | undefined; ; ) {
    const { rows, reached } = await readBy(read, { before, limit: EXPORT_BATCH })
    yield* rows
    const last = rows.at(-1)
    if (reached === null && rows.length < EXPORT_BATCH) return
    before = reached ?? (last && keyOf(last))
  }
}

/** What a file is read and written by. @param keyOf what the next batch follows. @param subject for the audit trail. */
type Lines<R> = {
  read: RowReader<R>
  keyOf: (row: R) => string
  line: (row: R) => readonly Value[]
  subject?: string
}

/**
 * Holds before each further batch that the team is open to its reader still. @throws RequestError insufficient_scope.
 */
const whileOpen =
  <R>(read: RowReader<R>, { team, person }: TeamRequest, { primary, clock }: PageDeps): RowReader<R> =>
  async (place) => {
    const seat = { session_id: person.session_id, team_id: team.id }
    if (place.before === undefined || (await sessionOpens(primary, seat, clock()))) return read(place)
    throw new RequestError('insufficient_scope', TEXTS.signedOut)
  }

/**
 * A list of a team as a file, for all who may read it; what an operator takes along is noted as `action`.
 * @param filter what its address may say.
 */
export const csvOf = <R>(
  path: string,
  {
    name,
    action,
    header,
    filter,
  }: { name: string; action: string; header: readonly string[]; filter: Filter },
  open: (request: TeamRequest, deps: PageDeps) => Lines<R> | Promise<Lines<R>>,
): TeamPage =>
  get(fromReplica('viewer'), path, async (request, deps) => {
    filter.only(request.query)
    const { read, keyOf, line, subject = filter.set(request.query).toString() } = await open(request, deps)
    async function* lines() {
      for await (const row of rowsBy(whileOpen(read, request, deps), keyOf)) yield line(row)
    }
    const file = await csvFile(request, name, header, lines())
    await auditRead(request, deps, { action, subject })
    return file
  })
