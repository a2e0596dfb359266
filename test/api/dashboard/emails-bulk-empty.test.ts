/** Bulk actions without a matching email. */
import { emptyBulk } from '../../../api/dashboard/pages/emails-bulk-empty.ts'
import { broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, database, team } = await world(t)

t.test('an incomplete search claims no deletion and links to the rest of the search', async (t) => {
  const { id, emails } = await aBroadcast(service, team)
  await emails('kept@example.net')
  const broadcast = await broadcastById(database, team.id, id)
  const of = (query: string, found: Partial<Parameters<typeof emptyBulk>[2]>) =>
    emptyBulk(
      { path: `/teams/${team.id}/emails/all`, query: new URLSearchParams(query), cookies: () => undefined },
      { database },
      { broadcast: null, lookedTo: new Date('2026-11-01T09:00:00Z'), ...found },
    )
  const stopped = await of(`broadcast=${id}`, { broadcast })
  t.match(stopped.empty, 'No emails found since 1 Nov 2026, 09:00:00 UTC.')
  const before = 'before=01a19656-4a80-7000-8000-000000000000'
  const path = `/teams/${team.id}/emails/all`
  t.strictSame(stopped.start, { href: `${path}?broadcast=${id}&${before}`, label: 'Search further back' })
  const single = await of('status=clicked', {})
  t.equal(single.start?.href, `${path}?status=clicked&${before}`)
  const whole = await of(`broadcast=${id}`, { broadcast, lookedTo: null })
  t.strictSame(whole, { empty: 'These emails have been deleted. Their counts are kept.' })
})
