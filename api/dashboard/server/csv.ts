/**
 * Streams lists as CSV (RFC 4180). Cells can't become formulas, however a spreadsheet splits a line
 * (db/validation/formulas.ts), and imports undo that. The file starts with a byte order mark, because Excel
 * needs it to detect UTF-8. The first rows are read before the response starts, so that an error is a page
 * and not a truncated file. The download is cut off when its reader's session ends or they leave the team.
 */

import { Readable } from 'node:stream'
import type { Role } from '../../../db/accounts/members/roles.ts'
import { sessionOpens } from '../../../db/accounts/members/sessions.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { guardFormulas } from '../../../db/validation/formulas.ts'
import { parseZone, toLocalTime } from '../components/zone.ts'
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

/** Streams rows as a file with the reader's local time in its name. @throws any error of reading the first row. */
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
  const time = toLocalTime(now.toISOString(), parseZone(cookies('zone')))
    .replace('T', '-')
    .replace(':', '')
  const headers = {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="${name}-${time}.csv"`,
  }
  return raw(headers, Readable.from(lines()))
}

const EXPORT_BATCH = 500

/** Reads all rows of a list in batches. A short batch is the last one, unless its search stopped early. */
export async function* batchesBy<R>(read: RowReader<R>, keyOf: (row: R) => string) {
  for (let before: string | undefined; ; ) {
    const { rows, reached } = await readBy(read, { before, limit: EXPORT_BATCH })
    yield rows
    const last = rows.at(-1)
    if (reached === null && rows.length < EXPORT_BATCH) return
    before = reached ?? (last && keyOf(last))
  }
}

/** `keyOf` returns a row's key, which the next batch follows. `subject` is for the audit log. */
type CsvSource<R> = {
  read: RowReader<R>
  keyOf: (row: R) => string
  line: (row: R) => readonly Value[]
  subject?: string
}

/** Checks the reader's session and team before each further batch. @throws RequestError insufficient_scope. */
export const whileOpen =
  <R>(
    read: RowReader<R>,
    { team, person }: { team: { id: string }; person: Pick<TeamRequest['person'], 'session_id'> },
    { primary, clock }: PageDeps,
  ): RowReader<R> =>
  async (place) => {
    const seat = { session_id: person.session_id, team_id: team.id }
    if (place.before === undefined || (await sessionOpens(primary, seat, clock()))) return read(place)
    throw new RequestError('insufficient_scope', TEXTS.signedOut)
  }

/**
 * Defines the CSV download of a team's list. A download by an operator who isn't a member is recorded in the
 * audit log as `action`.
 * @param filter the parameters that its URL can have. `access` is the needed role (default viewer).
 */
export const defineCsv = <R>(
  path: string,
  {
    name,
    action,
    header,
    filter,
    access = 'viewer',
  }: { name: string; action: string; header: readonly string[]; filter: Filter; access?: Role },
  open: (request: TeamRequest, deps: PageDeps) => CsvSource<R> | Promise<CsvSource<R>>,
): TeamPage =>
  get(fromReplica(access), path, async (request, deps) => {
    filter.only(request.query)
    const { read, keyOf, line, subject = filter.set(request.query).toString() } = await open(request, deps)
    async function* lines() {
      for await (const rows of batchesBy(whileOpen(read, request, deps), keyOf)) yield* rows.map(line)
    }
    const file = await csvFile(request, name, header, lines())
    await auditRead(request, deps, { action, subject })
    return file
  })
