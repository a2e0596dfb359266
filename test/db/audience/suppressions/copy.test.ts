/** Copies suppressions from before the table of addresses, and those that version 0.1.0 writes. */
import { sql } from 'slonik'
import { copyNext } from '../../../../db/audience/suppressions/copy.ts'
import { findSuppressed } from '../../../../db/audience/suppressions/suppressed.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { contactState, storeContact, storeTeam } from '../../../support/reports.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const service = await openStore(t)
const { database } = service
const secrets = createSecrets(SECRET_KEY)
const NOW = new Date('2026-11-28T12:00:00Z')
const copy = () => database.transaction((tx) => copyNext(tx, 100, NOW))

/** Stores a suppression as version 0.1.0 does. */
async function suppressAsBefore(
  team: string,
  email: string,
  what: string | null,
  detail: string,
  softly = false,
) {
  await storeContact(service, team, email)
  const status = what === 'complaint' || detail === 'asked' ? 'complained' : 'bounced'
  const cause =
    what === null
      ? null
      : JSON.stringify({ what, at: NOW.toISOString(), email_id: null, report_id: null, detail })
  await database.query(sql.unsafe`
    update contacts set status = ${status}, suppression = ${status}, suppression_cause = ${cause}::json,
      suppressed_softly = ${softly}, status_before = 'subscribed' where identity = ${email}`)
  return status
}

t.test('classifies stored bounces again, except manual suppressions', async (t) => {
  const team = await storeTeam(service)
  const stored: [string, string | null, string, string][] = [
    ['dead@example.org', 'permanent bounce', '550 5.1.1 no such user', 'bounce'],
    ['policy@example.org', 'permanent bounce', '550 5.7.1 blocked using a list', 'soft_bounces'],
    ['silent@example.org', 'permanent bounce', '', 'soft_bounces'],
    ['unknown@example.org', null, '', 'soft_bounces'],
    ['loud@example.org', 'complaint', '', 'complaint'],
    ['asked@example.org', 'added by hand', 'asked', 'complaint'],
    ['closed@example.org', 'added by hand', '550 5.1.1 no such user', 'manual'],
  ]
  for (const [email, what, detail] of stored) await suppressAsBefore(team, email, what, detail)
  await suppressAsBefore(team, 'soft@example.org', 'soft bounces', '452 4.2.2 full', true)
  t.same(await copy(), { checked: 8, copied: { bounce: 1, soft_bounces: 4, complaint: 2, manual: 1 } })
  const emails = stored.map(([email]) => email)
  const found = await findSuppressed(database, secrets, team, emails)
  const causes = emails.map((email) => found.get(email)?.cause)
  const expected = stored.map(([, , , cause]) => cause)
  t.strictSame(causes, expected)
  t.same(await contactState(service, team, 'policy@example.org'), {
    status: 'bounced',
    suppression: 'bounced',
  })
  t.same(await copy(), { checked: 0, copied: {} }, 'it is done once')
})

t.test('copies lifts and stronger causes of version 0.1.0', async (t) => {
  const team = await storeTeam(service)
  await suppressAsBefore(team, 'a@example.com', 'permanent bounce', '550 5.1.1 no such user')
  await copy()
  await database.query(sql.unsafe`
    update contacts set status = 'complained', suppression = 'complained',
      suppression_cause = ${JSON.stringify({ what: 'complaint', at: NOW.toISOString(), email_id: null, report_id: null, detail: '' })}::json
    where identity = 'a@example.com'`)
  t.equal((await copy()).checked, 1)
  const of = async () =>
    (await findSuppressed(database, secrets, team, ['a@example.com'])).get('a@example.com')
  t.match(await of(), { cause: 'complaint', stored: { bounce_response: '550 5.1.1 no such user' } })
  await database.query(sql.unsafe`
    update contacts set status = 'subscribed', suppression = null, suppression_cause = null
    where identity = 'a@example.com'`)
  t.equal((await copy()).checked, 1)
  t.equal(await of(), undefined)
})
