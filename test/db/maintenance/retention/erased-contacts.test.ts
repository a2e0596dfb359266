/** The remaining data of an erased address, and its status when it is created again. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { lockAccount } from '../../../../db/accounts/teams/limits.ts'
import { findSuppressed } from '../../../../db/audience/suppressions/suppressed.ts'
import { adminCli } from '../../../support/admin.ts'
import { report } from '../../../support/contacts.ts'
import { erasePerson } from '../../../support/erase.ts'
import { hold } from '../../../support/held.ts'
import { lockWaits } from '../../../support/rows.ts'
import { makeTeam, startService, type TestTeam } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { startWorker, until } from '../../../support/worker.ts'

const ANA = 'Ana.Diaz@example.com'

const service = await startService(t)
const { call, database, deps } = service
const cli = adminCli({ DATABASE_URL: service.url })
const erase = (team: TestTeam, email = ANA) => cli.json(['contact', 'erase', team.id, email])

t.test('keeps an unsubscribe that is accepted while an erasure waits', async (t) => {
  const team = await makeTeam(service)
  const identity = 'waits@example.com'
  await call('POST', '/v1/contacts', { key: team.key, body: { email: identity } })
  const commit = await hold(t, database, (tx) => lockAccount(tx, team.id))
  const erased = erasePerson(deps, team.id, identity)
  await until('it waits for the account', async () => (await lockWaits({ database })) > 0)
  t.equal((await call('POST', `/v1/contacts/${identity}/unsubscribe`, { key: team.key })).status, 200)
  await Promise.all([commit(), erased])
  const again = await call('POST', '/v1/contacts', { key: team.key, body: { email: identity } })
  t.match(again, { status: 201, body: { status: 'unsubscribed' } })
})

t.test('an erased address stays suppressed or unsubscribed when created again', async (t) => {
  const team = await makeTeam(service)
  await startWorker(t, service, { pauses: async (job) => job !== 'upsert-contacts' })
  const create = async (key: string, email: string) =>
    (await call('POST', '/v1/contacts', { key, body: { email } })).body.status
  for (const status of ['bounced', 'complained', 'unsubscribed']) {
    for (const [at, email] of [`${status}@example.com`, `${status}.bulk@example.com`].entries()) {
      await create(team.key, email)
      const suppression = status === 'unsubscribed' ? null : status
      await database.query(sql.unsafe`
        update contacts set status = ${status}, suppression = ${suppression} where team_id = ${team.id} and email = ${email}`)
      await erase(team, email)
      const begun = status === 'unsubscribed' ? status : 'subscribed'
      if (at === 0) t.equal(await create(team.key, email.toUpperCase()), begun)
      else await call('POST', '/v1/contacts/bulk', { key: team.key, body: { contacts: [{ email }] } })
      t.equal((await call('GET', `/v1/contacts/${email}`, { key: team.key })).body.status, begun)
    }
  }
  const ask = (verb: string) => call('POST', `/v1/contacts/bounced@example.com/${verb}`, { key: team.key })
  t.equal((await ask('resubscribe')).body.status, 'subscribed', 'a subscribed contact is left as it is')
  await ask('unsubscribe')
  t.equal((await ask('resubscribe')).body.error.code, 'contact_suppressed')
  const other = await makeTeam(service)
  t.equal(await create(other.key, 'bounced@example.com'), 'subscribed', 'another team knows nothing of it')
})

t.test('an erased address whose suppression was lifted starts subscribed', async (t) => {
  const team = await makeTeam(service)
  const create = async () =>
    (await call('POST', '/v1/contacts', { key: team.key, body: { email: ANA } })).body.status
  const remove = () => call('DELETE', `/v1/contacts/${ANA}`, { key: team.key })
  await create()
  await database.query(sql.unsafe`
    update contacts set status = 'bounced', suppression = 'bounced' where team_id = ${team.id}`)
  await erase(team)
  t.equal(await create(), 'subscribed')
  await remove()
  t.equal(await create(), 'subscribed')
  const held = () => findSuppressed(database, service.deps.secrets, team.id, [ANA.toLowerCase()])
  t.equal((await held()).size, 1, 'being made again does not end it')
  await cli.json(['contact', 'lift', team.id, ANA, '--reason', 'the mailbox is back'])
  t.equal((await held()).size, 0)
  await remove()
  t.equal(await create(), 'subscribed')
  await database.query(sql.unsafe`
    update contacts set status = 'unsubscribed', suppression = 'complained' where team_id = ${team.id}`)
  await erase(team)
  await create()
  await cli.json(['contact', 'lift', team.id, ANA, '--reason', 'by mistake'])
  await remove()
  t.equal(await create(), 'unsubscribed')
  const left = sql.unsafe`select 1 from contacts where team_id = ${team.id} and suppression is not null`
  t.notOk(await database.exists(left), 'what it had unsubscribed from stays, and the suppression is lifted')
})

t.test("lifting doesn't resubscribe an erased address that unsubscribed", async (t) => {
  const team = await makeTeam(service)
  const asked = async (method: string, path: string, body?: unknown) =>
    (await call(method, `/v1/contacts${path}`, { key: team.key, body })).body
  for (const [at, kind] of (['bounced', 'complained'] as const).entries()) {
    const email = `${at}.${ANA}`
    await asked('POST', '', { email })
    await asked('POST', `/${email}/unsubscribe`)
    await report(service, team, email, kind)
    t.equal((await asked('GET', `/${email}`)).status, kind)
    await erase(team, email)
    t.equal((await asked('POST', '', { email })).status, 'unsubscribed')
    t.match(await asked('POST', `/${email}/resubscribe`), { error: { code: 'contact_suppressed' } })
    await cli.json(['contact', 'lift', team.id, email, '--reason', 'the mailbox is back'])
    t.equal((await asked('GET', `/${email}`)).status, 'unsubscribed')
  }
})

t.test('an erased subscribed address leaves nothing', async (t) => {
  const team = await makeTeam(service)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: ANA } })
  await erase(team)
  t.notOk(await database.exists(sql.unsafe`select 1 from erased_contacts where team_id = ${team.id}`))
  const status = (await call('POST', '/v1/contacts', { key: team.key, body: { email: ANA } })).body.status
  t.equal(status, 'subscribed')
})

t.test('keeps only a keyed hash of an erased address', async (t) => {
  const team = await makeTeam(service)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: ANA } })
  await call('POST', `/v1/contacts/${ANA}/unsubscribe`, { key: team.key })
  await erase(team)
  const dump = object({ text: string().defined() })
  const { text } = await database.one(sql.type(dump)`
    select (select string_agg(c::text, '') from erased_contacts c where team_id = ${team.id})
      || coalesce((select string_agg(c::text, '') from contacts c where team_id = ${team.id}), '') as text`)
  t.match(text, /\\x[0-9a-f]{64}/)
  t.notMatch(text, /ana|diaz/i)
})
