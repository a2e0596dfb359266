/** The API log: a team's last rejected calls, by the names of their keys. */

import { type KeyRow, keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import {
  CALLS_STORED,
  type RejectedCall,
  rejectedCalls,
} from '../../../db/accounts/rejections/refusals.sql.ts'
import type { Code } from '../../../db/errors.ts'
import { STATUS } from '../../http/errors.ts'
import { type Cell, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildTable, get } from '../server/builders.ts'
import { type PageTeam, show, type TeamRequest, teamPath } from '../server/page.ts'

export const logPath = (team: PageTeam): string => teamPath(team, 'integration', 'log')

/** Builds the cell with a call's key. A prefix without a key is shown unchanged. */
function keyCell(prefix: string | null, keys: readonly KeyRow[], team: PageTeam): Cell {
  if (prefix === null) return text('a session token')
  const key = keys.find((one) => one.prefix === prefix)
  if (!key) return text(`${prefix}…`, { code: true })
  return text(key.name, { href: teamPath(team, 'keys', key.id), detail: `${prefix}…` })
}

/** Describes a response with its HTTP status and code. A code of a newer version has no known status. */
const responseWords = (code: string): string => {
  const status: number | undefined = STATUS[code as Code]
  return status === undefined ? code : `${status} ${code}`
}

/** @param keys the team's keys. Without them the table has no column for keys. */
export function rejectedTable(
  calls: readonly RejectedCall[],
  { team, now }: TeamRequest,
  { keys, ...more }: { keys?: readonly KeyRow[]; title?: string; note?: string },
): Section {
  return buildTable(
    calls,
    ({ created_at, method, route, code, message, key_prefix, http_request_id }) => ({
      When: time(created_at, now),
      Request: text(`${method} ${route}`, { code: true }),
      Response: text(responseWords(code), { code: true, detail: message }),
      Key: keys !== undefined && keyCell(key_prefix, keys, team),
      // Shows the last characters, because IDs of the same minute have the same start.
      'Request ID': text(`…${http_request_id.slice(-8)}`, {
        code: true,
        tip: http_request_id,
        copy: true,
        copied: http_request_id,
      }),
    }),
    {
      id: 'rejected',
      live: true,
      ...more,
      main: 'Request',
      wrap: ['Request', 'Response'],
      empty: 'No rejected calls.',
    },
  )
}

const page = get('viewer', '/teams/:team/integration/log', async (request, { database }) => {
  const { team } = request
  const calls = await rejectedCalls(database, team.id)
  return show({
    title: 'API log',
    lead: `The last ${CALLS_STORED} rejected calls. Successful calls and bodies aren’t stored.`,
    sections: [rejectedTable(calls, request, { keys: await keysOfTeam(database, team.id) })],
  })
})

export const apiLogPages = [page]
