/** The offer of a draft's page to start a new sending domain slowly. */

import { sql } from 'slonik'
import { beginBroadcasting } from '../../support/broadcasting.ts'
import { fillContacts } from '../../support/contacts.ts'
import { formsTo, shows, signedIn, textOf } from '../../support/dashboard.ts'
import t from '../../support/tap.ts'

t.test('owners are offered a slow start if the audience exceeds its first day', async (t) => {
  const { service, team, topic_id, create } = await beginBroadcasting(t, { contact_limit: 2_000 })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const start = `/teams/${team.id}/domains/example.com/ramp`
  const fill = async (contacts: number) => {
    await service.database.query(sql.unsafe`delete from contacts where team_id = ${team.id}`)
    await fillContacts(service, team.id, contacts)
    await service.database.query(sql.unsafe`
      update contacts set topic_ids = array[${topic_id}::uuid], properties = '{"name": "Ann"}' where team_id = ${team.id}`)
  }
  const path = `/teams/${team.id}/broadcasts/${await create()}`
  await fill(500)
  const small = await owner.get(path)
  shows(t, small, /Contacts 500/)
  t.notMatch(textOf(small.html), /new sending domain/)
  await fill(501)
  const large = await owner.get(path)
  shows(t, large, /A new sending domain .*Start slowly: 500 emails on the first day/)
  t.equal(formsTo(large, start).length, 1)
  t.notMatch(textOf((await editor.get(path)).html), /new sending domain/)
  t.equal((await owner.press(path, start, { limit: '500' })).status, 303)
  t.notMatch(textOf((await owner.get(path)).html), /new sending domain/, 'it has been decided')
})
