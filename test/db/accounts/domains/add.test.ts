/** Concurrent additions and key rotations of a team's domains. */
import { addDomain, removeDomain } from '../../../../db/accounts/domains/add.ts'
import { domainsOfTeam } from '../../../../db/accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../../../../db/accounts/domains/rekey.ts'
import { RequestError } from '../../../../db/errors.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

t.test("concurrent additions never exceed the plan's domains_limit", async (t) => {
  const { database, team } = await openStore(t)
  // It already has demo.test. The plan allows 5.
  const id = await team('free')
  const deps = { tx: database, secrets: createSecrets(SECRET_KEY), now: new Date(), actor: 'cli' }
  const added = await Promise.allSettled(
    Array.from({ length: 8 }, (_, n) => addDomain(deps, id, { name: `d${n}.test`, verified: false })),
  )
  t.equal(added.filter(({ status }) => status === 'fulfilled').length, 4)
  const refusals = added.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  for (const refusal of refusals) {
    t.ok(refusal instanceof RequestError)
    t.match(refusal, { code: 'quota_exceeded', message: /^Domain quota exceeded/ })
  }
  t.equal((await domainsOfTeam(database, id)).length, 5)
})

t.test('rejects a domain that is added twice concurrently', async (t) => {
  const { database, team } = await openStore(t)
  const id = await team('pro')
  const deps = { tx: database, secrets: createSecrets(SECRET_KEY), now: new Date(), actor: 'cli' }
  const added = await Promise.allSettled(
    ['a.test', 'A.test'].map((name) => addDomain(deps, id, { name, verified: false })),
  )
  t.strictSame(added.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = added.find((outcome) => outcome.status === 'rejected')
  t.match(refused?.reason, { code: 'bad_request', message: /already has the domain a\.test/ })
})

t.test('every DKIM key has its own selector', async (t) => {
  const { database, team } = await openStore(t)
  const deps = { tx: database, secrets: createSecrets(SECRET_KEY), now: new Date(), actor: 'cli' }
  const [one, other] = [await team('pro'), await team('pro')]
  const domain = { name: 'a.test', verified: false }
  const added = [await addDomain(deps, one, domain), await addDomain(deps, other, domain)]
  await removeDomain(deps, one, domain.name)
  const again = await addDomain(deps, one, domain)
  const rotated = await Promise.all([0, 1].map(() => rekeyDomain(deps, one, domain.name)))
  const selectors = [
    ...[...added, again].map(({ dkim_selector }) => dkim_selector),
    ...rotated.map(({ next_dkim_selector }) => next_dkim_selector),
  ]
  t.equal(new Set(selectors).size, 5, selectors.join())
})
