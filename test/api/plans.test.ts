/** GET /v1/plans: the public catalog. DECISIONS: Plan catalog. */
import { sql } from 'slonik'
import { loadCatalog } from '../../db/accounts/plans/catalog.ts'
import defaultCatalog from '../../db/accounts/plans/default-catalog.json' with { type: 'json' }
import { createTeam } from '../../db/accounts/teams/create.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { byCli, startService } from '../support/service.ts'
import t from '../support/tap.ts'

let now = new Date('2027-01-15T12:00:00.000Z')
const service = await startService(t, { clock: () => now })
const plans = async (query = '', headers: Record<string, string> = {}) =>
  await service.call('GET', `/v1/plans${query}`, { headers })
const load = async (catalog: unknown) => {
  await service.database.transaction((tx) => loadCatalog(byCli(tx), catalog))
  now = new Date(now.getTime() + 60_000)
}

t.test('returns the catalog without credentials', async (t) => {
  const { status, body } = await plans()
  t.equal(status, 200)
  t.strictSame(Object.keys(body), ['free_allowances', 'overage_per_1000_cents', 'plans', 'contacts_tiers'])
  t.strictSame(body.free_allowances, { emails: 5000, contacts: 1000 })
  t.equal(body.overage_per_1000_cents, 90)
  t.equal(body.plans.map((plan: { key: string }) => plan.key).join(), 'free,pro,enterprise')
  t.strictSame(body.plans[0], {
    key: 'free',
    kind: 'free',
    name: 'Free',
    blurb: 'For trying things out and for small projects.',
    cta: 'Start for free',
    featured: false,
    benefits: ['5,000 emails per month', '1,000 contacts', '5 sending domains', '1 GB storage'],
    email_limit: 5000,
    contact_limit: 1000,
    domains_limit: 5,
    storage_gb: 1,
    send_rate_per_second: 1,
    tiers: null,
  })
  t.match(body.plans[1], { kind: 'paid', send_rate_per_second: 10, domains_limit: 25, storage_gb: 50 })
  t.strictSame(body.plans[1].tiers[0], { emails: 50000, monthly_cents: 2000, annual_cents: 20000 })
  t.notOk('email_limit' in body.plans[1])
  const fields = Object.keys(body.plans[2])
  t.strictSame(fields, 'key kind name blurb cta featured benefits send_rate_per_second tiers'.split(' '))
  t.equal(body.plans[2].tiers, null)
  t.strictSame(body.contacts_tiers[0], { contacts: 5000, monthly_cents: 2500 })
})

t.test('supports fr, and returns en for other locales', async (t) => {
  const french = (await plans('?locale=fr')).body.plans[0]
  t.match(french, { name: 'Gratuit', cta: 'Commencer gratuitement' })
  t.equal(french.benefits[0], '5\u202f000 e-mails par mois')
  for (const query of ['', '?locale=en', '?locale=de', '?locale=', '?locale=FR', '?locale=__proto__'])
    t.equal((await plans(query)).body.plans[0].name, 'Free', query)
})

t.test('loads a catalog into a schema with a newer column', async (t) => {
  const { database } = service
  await database.query(sql.unsafe`alter table plans add column next_word text not null default 'none'`)
  await load(defaultCatalog)
  t.equal((await plans()).body.plans.length, 3)
  await database.query(sql.unsafe`alter table plans drop column next_word`)
})

t.test('is cached for 60 seconds, and returns 304', async (t) => {
  const first = await plans()
  t.equal(first.headers.get('cache-control'), 'public, max-age=60')
  const etag = first.headers.get('etag') ?? ''
  const again = await plans('', { 'If-None-Match': etag })
  t.equal(again.status, 304)
  t.equal(again.body, '')
  t.equal(again.headers.get('etag'), etag)
  t.equal((await plans('?locale=fr', { 'If-None-Match': etag })).status, 200)
  t.equal((await plans('', { 'If-None-Match': `"other", W/${etag}` })).status, 304)
})

t.test('max-age is how long our own copy remains valid', async (t) => {
  await load(defaultCatalog)
  const maxAge = async () => (await plans()).headers.get('cache-control')
  t.equal(await maxAge(), 'public, max-age=60')
  now = new Date(now.getTime() + 20_500)
  t.equal(await maxAge(), 'public, max-age=39')
  now = new Date(now.getTime() + 39_499)
  t.equal(await maxAge(), 'public, max-age=0')
  now = new Date(now.getTime() + 1)
  t.equal(await maxAge(), 'public, max-age=60')
})

t.test('changes of the catalog are visible within a minute', async (t) => {
  await plans()
  const [free, ...others] = defaultCatalog.plans
  const changed = { plans: [{ ...free, name: { en: 'Zero', fr: 'Zéro' } }, ...others] }
  await service.database.transaction((tx) => loadCatalog(byCli(tx), changed))
  now = new Date(now.getTime() + 59_999)
  t.equal((await plans()).body.plans[0].name, 'Free')
  now = new Date(now.getTime() + 1)
  t.equal((await plans()).body.plans[0].name, 'Zero')
})

t.test('an empty catalog has default quotas and no plans', async (t) => {
  await load({ plans: [] })
  t.strictSame((await plans()).body, {
    free_allowances: { emails: 5000, contacts: 1000 },
    overage_per_1000_cents: null,
    plans: [],
    contacts_tiers: [],
  })
  await load(defaultCatalog)
})

t.test('plans without limits have the default ones', async (t) => {
  const bare = ({ key, kind, name, blurb, cta, benefits }: (typeof defaultCatalog.plans)[number]) => ({
    key,
    kind,
    name,
    blurb,
    cta,
    benefits,
    tiers: [{ emails: 70_000, monthly_cents: 0 }],
  })
  await load({ plans: defaultCatalog.plans.slice(0, 3).map(bare) })
  const { body } = await plans()
  t.strictSame(body.free_allowances, { emails: 5000, contacts: 1000 })
  t.match(body.plans[0], { key: 'free', email_limit: 5000, contact_limit: 1000, tiers: null })
  t.notOk('send_rate_per_second' in body.plans[0], 'omitted when not set')
  const limitsOn = async (plan: string) => {
    const { id } = await service.database.transaction((tx) => createTeam(byCli(tx), { name: 'A team', plan }))
    const { limits, bucket } = await showTeam(service.database, id)
    return { ...limits, tokens: bucket.tokens }
  }
  const free = await limitsOn('free')
  t.strictSame(free, { emails: 5000, contacts: 1000, whatsapp: 250, rate: 1, storage: null, tokens: 5 })
  t.strictSame(await limitsOn('pro'), {
    emails: 70_000,
    contacts: null,
    whatsapp: 10_000,
    rate: 10,
    storage: null,
    tokens: 50,
  })
  t.strictSame(await limitsOn('enterprise'), {
    emails: null,
    contacts: null,
    whatsapp: null,
    rate: 10,
    storage: null,
    tokens: 50,
  })
  await load(defaultCatalog)
})
