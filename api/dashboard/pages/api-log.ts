/** Lists a team's last rejected API calls, with the names of their keys. */

import { type KeyRow, keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import {
  CALLS_STORED,
  type RejectedCall,
  rejectedCalls,
} from '../../../db/accounts/rejections/refusals.sql.ts'
import type { Code } from '../../../db/errors.ts'
import { STATUS } from '../../http/errors.ts'
import { type Cell, text, time } from '../components/cell.ts'
import { buildTable, compact, get } from '../server/builders.ts'
import { type PageTeam, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortable } from '../server/sort.ts'

/** Builds the cell with a call's key. A prefix without a key is shown unchanged. */
function keyCell(prefix: string | null, keys: readonly KeyRow[], team: PageTeam): Cell {
  if (prefix === null) return text('a session token')
  const key = keys.find((one) => one.prefix === prefix)
  if (!key) return text(`${prefix}…`, { code: true })
  return text(key.name, { href: teamPath(team, 'keys', key.id), tip: `${key.name} · ${prefix}…` })
}

/** Returns the HTTP status of a code. A code of a newer version has none. */
const statusOf = (code: string): number | undefined => STATUS[code as Code]

/** Pages to correct the cause of an error, by its code. Other errors are corrected in the call. */
const FIXES: Readonly<Partial<Record<string, readonly [label: string, page: string]>>> = {
  contact_suppressed: ['Suppressions', 'suppressions'],
  domain_not_allowed: ['API keys', 'keys'],
  from_domain_not_verified: ['Domains', 'domains'],
  insufficient_scope: ['API keys', 'keys'],
  quota_exceeded: ['Settings', 'settings'],
} satisfies Partial<Record<Code, readonly [string, string]>>

function fixCell(code: string, team: PageTeam): Cell {
  const [label, page] = FIXES[code] ?? []
  return label && page ? text(label, { href: teamPath(team, page) }) : text('')
}

/** @param keys the team's keys. Without them the table has no column for keys. */
export function rejectedTable(
  calls: readonly RejectedCall[],
  { team, now }: TeamRequest,
  { keys, ...more }: { keys?: readonly KeyRow[]; title?: string; note?: string },
) {
  const isAnyFixedHere = calls.some(({ code }) => FIXES[code] !== undefined)
  return buildTable(
    calls,
    ({ created_at, method, route, code, message, key_prefix, http_request_id }) => ({
      Problem: text(message, { detail: `${compact([statusOf(code), code]).join(' ')} · ${method} ${route}` }),
      Key: keys !== undefined && keyCell(key_prefix, keys, team),
      'Fix in': isAnyFixedHere && fixCell(code, team),
      // Shows the last characters, because IDs of the same minute have the same start.
      'Request ID': text(`…${http_request_id.slice(-8)}`, {
        code: true,
        tip: http_request_id,
        copy: true,
        copied: http_request_id,
      }),
      When: time(created_at, now),
    }),
    { id: 'rejected', live: true, ...more, main: 'Problem', wrap: ['Problem'], empty: 'No rejected calls.' },
  )
}

const page = get('viewer', '/teams/:team/integration/log', async (request, { database }) => {
  const { team } = request
  const calls = await rejectedCalls(database, team.id)
  return show({
    title: 'Rejected API calls',
    lead: `The last ${CALLS_STORED} rejected calls of all keys. Successful calls and request bodies aren’t stored.`,
    actions: { links: [{ href: '/docs#errors', label: 'Error codes', outside: true }] },
    sections: [
      sortable(request, rejectedTable(calls, request, { keys: await keysOfTeam(database, team.id) })),
    ],
  })
})

export const apiLogPages = [page]
