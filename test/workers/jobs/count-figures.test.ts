/** The stats behind the dashboard's charts. */
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { removeEmail } from '../../../db/messages/emails/remove.ts'
import { dayBefore, foldStats } from '../../../db/stats/daily/fold.ts'
import { figuresSince } from '../../../db/stats/daily/stats.sql.ts'
import { recordBounce } from '../../support/bounce.ts'
import { openStore } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

/** The database's clock is set to this, because stats are by day and a test may run across midnight. */
const NOON = new Date('2026-03-02T12:00:00Z')

t.test('stats follow the rows: days, statuses and deletion', async (t) => {
  const store = await openStore(t)
  const { database } = store
  const team = await store.team('free', NOON)
  const other = await store.team()
  const one = await store.email(team)
  const two = await store.email(team)
  await store.email(other)
  const count = () => foldStats(database)
  const figures = () => figuresSince(database, team, EMAIL, dayBefore(NOON, 1))
  await count()
  t.match(await figures(), [{ day: '2026-03-02', status: 'queued', count: 2 }])
  await recordBounce(store, { team_id: team, email_id: one.id }, { recipient: 'someone@example.com' })
  await count()
  t.match(await figures(), [
    { status: 'bounced', count: 1 },
    { status: 'queued', count: 1 },
  ])
  await database.transaction((tx) => removeEmail({ tx, now: new Date(), actor: null }, team, two.id))
  await count()
  t.match(await figures(), [{ status: 'bounced', count: 1 }])
})
