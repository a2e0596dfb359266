/** The domains whose broadcasts are limited at first. */
import { sql } from 'slonik'
import { readRamp } from '../../../../db/accounts/domains/ramps.sql.ts'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { reserveRampPlaces, startRamp } from '../../../../db/messages/broadcasts/ramp.ts'
import { acceptEmails } from '../../../../db/messages/emails/accept.ts'
import { anItem, openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

t.test('a domain with 1,000 accepted emails has a history', async (t) => {
  const { database, queue, team } = await openStore(t)
  const team_id = await team('pro')
  const at = { queue, versions: createVersions() }
  const items = Array.from({ length: 50 }, () => anItem())
  for (let batch = 0; batch < 20; batch++) {
    // A bucket of the plan has 50 tokens.
    await database.query(sql.unsafe`update allowances set bucket_tokens = 50`)
    await database.transaction((tx) => acceptEmails({ ...at, tx }, { team_id, domain: null }, items))
  }
  const stateAfter = async (accepted: number) => {
    await database.query(sql.unsafe`
      update email_states set provider_message_id = id::text, status = 'sent'
      where id in (select id from email_states limit ${accepted})`)
    await database.query(sql.unsafe`delete from domain_ramps`)
    await startRamp(database, 'demo.test', { limit: 500, factor: 2 })
    return (await readRamp(database, 'demo.test'))?.state
  }
  t.equal(await stateAfter(999), 'on')
  await database.query(sql.unsafe`
    update domain_ramps set day_limit = 50000, used = 25000, day = day - 1 where name = 'demo.test'`)
  t.equal(await reserveRampPlaces(database, 'demo.test', 1), null)
  t.equal((await readRamp(database, 'demo.test'))?.state, 'ended', 'the limit has reached 100,000')
  t.equal(await stateAfter(1_000), 'off')
})
