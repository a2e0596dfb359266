/** The nightly recheck of verified domains, with a test DNS server. DECISIONS: Domains checked again. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { addDomain, domainView } from '../../../../db/accounts/domains/add.ts'
import { createDomainLookups, type TxtLookup } from '../../../../db/accounts/domains/dns-lookups.ts'
import { type DomainRow, domainByName } from '../../../../db/accounts/domains/domains.sql.ts'
import { recheckDomains } from '../../../../db/accounts/domains/recheck.ts'
import { verifyDomain } from '../../../../db/accounts/domains/verify.ts'
import { emailOwners } from '../../../../db/messages/notice.ts'
import { addEndpoint } from '../../../../db/messages/webhooks/endpoints.ts'
import { stopClock } from '../../../support/clock.ts'
import { shows, signedIn, textOf } from '../../../support/dashboard.ts'
import { assertWebhook } from '../../../support/described.ts'
import { startDns } from '../../../support/dns.ts'
import { anEmail, makeTeam, startService } from '../../../support/service.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'
import { startWorker, until } from '../../../support/worker.ts'

const DAY = 86_400_000
const bodyRow = object({ body: string().defined() })

/** A team with a domain that was verified by its record, and its nightly rechecks. */
async function start(t: Test, { test = false } = {}) {
  const service = await startService(t)
  const { database, deps } = service
  const dns = await startDns(t)
  const lookups = createDomainLookups(dns.address, 300)
  const { lookupTxt } = lookups
  const team = await makeTeam(service, { domain: 'word.test', test })
  let now = new Date('2027-03-01T02:30:00Z')
  await stopClock(database, now)
  const publish = (row: Parameters<typeof domainView>[0]): void => {
    const [record] = domainView(row, null).dns_records
    if (record) dns.records.set(record.name, [record.value.match(/.{1,255}/gs) ?? []])
  }
  const look = (lookup: TxtLookup = lookupTxt) =>
    recheckDomains({ database, lookupTxt: lookup, queue: deps.queue }, 60_000)
  return {
    ...{ service, database, deps, dns, team, publish, look, lookups },
    now: () => now,
    /** Runs the recheck of the next night. */
    async night(lookup?: TxtLookup) {
      now = new Date(now.getTime() + DAY - 5_000)
      await stopClock(database, now)
      return look(lookup)
    },
    async verified(name: string) {
      const by = { now, actor: 'cli' as const }
      const row = await addDomain({ ...by, tx: database, secrets: deps.secrets }, team.id, {
        name,
        verified: false,
      })
      publish(row)
      await verifyDomain({ ...by, database, ...lookups, returnDomain: null }, team.id, name)
      return row
    },
    missing: async (name: string) => {
      const row = await domainByName(database, team.id, name)
      return [row?.status, row?.missing_since?.slice(0, 10) ?? null, row?.failing_since?.slice(0, 10) ?? null]
    },
    webhooks: async () =>
      (await database.anyFirst(sql.type(bodyRow)`select body from webhook_messages order by id`)).map(
        (body) => JSON.parse(body),
      ),
    notices: () =>
      database.any(sql.unsafe`select data from pgboss.job where name = 'mail-owners'`) as Promise<
        readonly { data: Record<string, string> }[]
      >,
    overview: async () =>
      textOf(
        (await (await signedIn(service, { team: team.id, role: 'viewer' })).get(`/teams/${team.id}`)).html,
      ),
  }
}

/** The name of the record with its key. */
const hostOf = ({ dkim_selector, name }: DomainRow) => `${dkim_selector}._domainkey.${name}`

const wishOf = (types: readonly string[], domain: string | null) => ({
  ...{ url: 'https://hooks.example.com/', name: domain ?? 'all', types: [...types], domain },
})

t.test('notifies owners after two missing nights, and keeps sending', async (t) => {
  const {
    service,
    database,
    deps,
    dns,
    team,
    verified,
    night,
    look,
    missing,
    webhooks,
    notices,
    overview,
    ...own
  } = await start(t)
  const host = hostOf(await verified('mail.example.com'))
  await verified('other.example.com')
  await addEndpoint(
    { tx: database, now: own.now(), actor: 'cli', secrets: deps.secrets, allowed: [] },
    team.id,
    wishOf(['*'], null),
  )
  await addEndpoint(
    { tx: database, now: own.now(), actor: 'cli', secrets: deps.secrets, allowed: [] },
    team.id,
    wishOf(['domain.failing'], 'other.example.com'),
  )
  t.match(await night(), { checked: 3, failing: 0 })
  t.strictSame(await missing('mail.example.com'), ['verified', null, null])
  dns.records.delete(host)
  t.match(await night(), { checked: 3, failing: 0 })
  t.strictSame(await missing('mail.example.com'), ['verified', '2027-03-03', null])
  t.match(await look(), { checked: 0 }, 'once a night')
  t.match(await overview(), 'Nothing needs attention')
  t.strictSame(await webhooks(), [])
  t.match(await night(), { checked: 3, failing: 1 })
  t.strictSame(await missing('mail.example.com'), ['verified', '2027-03-03', '2027-03-04'])
  t.strictSame(await missing('other.example.com'), ['verified', null, null])
  t.match(
    await overview(),
    /The DKIM record of mail\.example\.com has been missing or different since 3 Mar 2027, \d\d:\d\d:\d\d UTC \. Email from it is still sent/,
  )
  const heard = await webhooks()
  t.match(heard, [
    {
      type: 'domain.failing',
      timestamp: '2027-03-04T02:29:45.000Z',
      data: {
        name: 'mail.example.com',
        host,
        value: /^v=DKIM1; k=rsa; p=/,
        state: 'missing',
        missing_since: /^2027-03-03/,
        detail: `the DKIM record ${host} is missing`,
      },
    },
  ])
  t.equal(heard.length, 1, 'the webhook of another domain hears nothing of it')
  for (const body of heard) assertWebhook(body)
  t.equal((await notices()).length, 1)
  await night()
  t.equal((await webhooks()).length, 1, 'once')
  t.equal((await notices()).length, 1)
  const sent = await service.call('POST', '/v1/emails', {
    key: team.key,
    body: anEmail({ from: 'a@mail.example.com' }),
  })
  t.equal(sent.status, 201, 'mail goes on')
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  shows(
    t,
    await owner.get(`/teams/${team.id}/domains/mail.example.com`),
    /DKIM missing or different since 3 Mar 2027/,
  )
})

t.test('recovers when the record is found', async (t) => {
  const { database, deps, dns, team, verified, publish, night, missing, notices, overview, lookups, now } =
    await start(t)
  const row = await verified('mail.example.com')
  const lose = async () => {
    dns.records.set(hostOf(row), [['v=DKIM1; k=rsa; p=AAAA']])
    await night()
    await night()
    t.match(await missing('mail.example.com'), ['verified', /2027/, /2027/], 'another key is as bad as none')
  }
  await lose()
  publish(row)
  await night()
  t.strictSame(await missing('mail.example.com'), ['verified', null, null])
  t.match(await overview(), 'Nothing needs attention')
  const [first] = await notices()
  const versions = deps.versions
  const late = await emailOwners({ tx: database, queue: deps.queue, versions }, first?.data as never, {
    from: 'login@word.test',
    operator: null,
    site: null,
  })
  t.equal(late, 0, 'a mail that was not written yet is not written any more')
  await lose()
  t.equal((await notices()).length, 2)
  publish(row)
  await verifyDomain(
    { database, ...lookups, returnDomain: null, now: now(), actor: 'cli' },
    team.id,
    'mail.example.com',
  )
  t.strictSame(await missing('mail.example.com'), ['verified', null, null])
})

t.test('ignores SERVFAIL and timeouts', async (t) => {
  const { dns, verified, night, missing } = await start(t)
  const host = hostOf(await verified('mail.example.com'))
  for (const trouble of ['failing', 'silent'] as const) {
    dns[trouble] = true
    for (let nights = 0; nights < 3; nights++) await night(createDomainLookups(dns.address, 300).lookupTxt)
    t.strictSame(await missing('mail.example.com'), ['verified', null, null], trouble)
    dns[trouble] = false
  }
  dns.records.delete(host)
  await night()
  dns.failing = true
  await night()
  t.match(await missing('mail.example.com'), ['verified', /2027/, null], 'nor that it is missing still')
  dns.failing = false
  await night()
  t.match(await missing('mail.example.com'), ['verified', /2027/, /2027/])
})

t.test("doesn't report a domain whose record was never found", async (t) => {
  const { database, team, publish, night, missing, dns } = await start(t)
  for (let nights = 0; nights < 3; nights++) await night()
  t.strictSame(await missing('word.test'), ['verified', null, null])
  const row = await domainByName(database, team.id, 'word.test')
  if (row) publish(row)
  await night()
  dns.records.clear()
  await night()
  await night()
  t.match(await missing('word.test'), ['verified', /2027/, /2027/])
})

t.test('skips pending domains and those of test teams', async (t) => {
  const { database, deps, dns, team, night, now } = await start(t, { test: true })
  const live = await makeTeam({ database, deps }, { domain: 'live.test' })
  const by = { tx: database, now: now(), actor: 'cli' as const, secrets: deps.secrets }
  await addDomain(by, live.id, { name: 'pending.test', verified: false })
  await addDomain(by, team.id, { name: 'simulated.test', verified: false })
  await night()
  t.strictSame(dns.asked, ['hg1._domainkey.live.test'])
})

t.test('checks every domain in a night, 50 at a time', async (t) => {
  const { database, team, night } = await start(t)
  await database.query(sql.unsafe`
    insert into domains (team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at, verified_at)
    select team_id, gen_random_uuid(), 'd' || n || '.test', 'verified', dkim_selector, dkim_public_key, dkim_private_key, now(), now()
    from domains, generate_series(1, 129) n where team_id = ${team.id}`)
  let [open, most] = [0, 0]
  const asked = new Set<string>()
  const checked = await night(async (name) => {
    asked.add(name)
    most = Math.max(most, ++open)
    await new Promise((done) => setTimeout(done, 20))
    open -= 1
    return []
  })
  t.strictSame(checked, { checked: 130, failing: 0 })
  t.equal(asked.size, 130)
  t.equal(most, 50)
})

t.test('sends owners one email with the record and no key', async (t) => {
  const { service, dns, team, verified, night, now } = await start(t)
  const sink = await startSmtpSink(t)
  const host = hostOf(await verified('mail.example.com'))
  await signedIn(service, { team: team.id, role: 'owner', email: 'a-owner@example.org' })
  await signedIn(service, { team: team.id, role: 'editor', email: 'b-editor@example.org' })
  dns.records.delete(host)
  await night()
  await night()
  const notices = { from: 'Heliograph <login@word.test>', operator: null, site: 'https://mail.example.com' }
  await startWorker(t, service, { smtp_url: sink.url, notices, clock: now })
  await until('the owner has mail', () => sink.messages().length > 0)
  const row = object({ to: string().defined(), subject: string().defined(), body_text: string().defined() })
  t.match(
    await service.database.any(sql.type(row)`select to_emails[1] as to, subject, body_text from emails`),
    [
      {
        to: 'a-owner@example.org',
        subject: 'The DKIM record of mail.example.com is missing or has another value',
        body_text: new RegExp(`2027-03-02.* ${host} .*/domains/mail.example.com`, 's'),
      },
    ],
  )
})
