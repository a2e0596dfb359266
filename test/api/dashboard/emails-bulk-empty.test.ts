/** Bulk actions without a matching email. */
import { emptyBulk } from '../../../api/dashboard/pages/emails-bulk-empty.ts'
import { broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, database, team } = await world(t)

t.test('an incomplete search claims no deletion and links to the emails', async (t) => {
  const { id, emails } = await aBroadcast(service, team)
  await emails('kept@example.net')
  const broadcast = await broadcastById(database, team.id, id)
  const own = { ...team, name: 'Acme', role: 'editor' as const, suspended: null }
  const of = (query: string, found: Partial<Parameters<typeof emptyBulk>[2]>) =>
    emptyBulk(
      { team: own as never, query: new URLSearchParams(query) },
      { database },
      { broadcast: null, searchedTo: '1 Nov 2026, 9:00', ...found },
    )
  const stopped = await of(`broadcast=${id}`, { broadcast })
  t.match(stopped.empty, 'No emails found from 1 Nov 2026, 9:00 on.')
  t.match(stopped.start, { href: `/teams/${team.id}/broadcasts/${id}/people`, label: 'Show recipients' })
  const single = await of('status=clicked', {})
  t.match(single.start?.href, `/teams/${team.id}/emails?status=clicked`)
  const whole = await of(`broadcast=${id}`, { broadcast, searchedTo: null })
  t.strictSame(whole, { empty: 'These emails have been deleted. Their counts are kept.' })
})
