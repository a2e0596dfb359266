/** The records, verification and keys of domains. */
import { sql } from 'slonik'
import { recordRejectedReturnPaths } from '../../../db/accounts/domains/domains.sql.ts'
import { after, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { publishRecord } from '../../support/dkim-record.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, startService, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const dns = new Map<string, string[]>()
/** The number of lookups, and the lead of the clock in milliseconds. */
const dnsState = { asked: 0, ahead: 0 }
/** Names whose name server doesn't respond. */
const silent = new Set<string>()
const { service, database, team } = await world(t, {
  clock: () => new Date(Date.now() + dnsState.ahead),
  dashboard: {
    lookupTxt: (name) => {
      dnsState.asked += 1
      return silent.has(name) ? new Promise(() => {}) : Promise.resolve(dns.get(name) ?? [])
    },
    zoneOf: async () => 'example.net',
    returnDomain: 'bounces.example.com',
  },
})
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string): string => `/teams/${team.id}/${path}`

/** Publishes the first DKIM record on the page of a domain. */
const publish = (page: string) => publishRecord(dns, owner, page)

t.test('a domain without a return path refers to the operator', async (t) => {
  const other = await startService(t)
  const { id } = await makeTeam(other, { domain: 'lost-bounces.test' })
  const page = await (await signedIn(other, { team: id, role: 'owner' })).get(
    `/teams/${id}/domains/lost-bounces.test`,
  )
  shows(
    t,
    page,
    /Bounces not counted They return to .*own mail server, .*\. Ask your operator to set up a return path\./,
  )
  t.notMatch(page.html, 'RETURN_PATH_DOMAIN')
})

t.test('adds a domain, compares its records and verifies it', async (t) => {
  const added = await after(owner, await owner.post(at('domains'), { name: 'Mail.Example.net' }))
  shows(t, added, /mail\.example\.net was added.*DKIM.*missing/)
  const record = /v=DKIM1; k=rsa; p=[\w+/]+={0,2}/.exec(textOf(added.html))?.[0] ?? ''
  const name = /[\w-]+\._domainkey\.mail\.example\.net/.exec(added.html)?.[0] ?? ''
  t.match(added.html, `title="${name}"`, 'the whole name in the tip')
  shows(
    t,
    added,
    new RegExp(
      `Hosts are shown without example\\.net.* TXT · needed host ${name.replace('.example.net', '')} Copy host`,
    ),
  )
  shows(t, added, /CNAME · recommended host bounces\.mail Copy host value bounces\.example\.com Copy value/)
  const collapsed = `<details><summary><code>v=DKIM1; k=rsa; p=…</code></summary><code>`.replaceAll(
    '=',
    '&#x3D;',
  )
  const shown = added.html.split(collapsed)[1]?.split('</details>') ?? []
  t.equal(textOf(shown[0] ?? '').replaceAll(' ', ''), record.replaceAll(' ', ''), 'the whole value in it')
  t.ok(
    shown[1]?.startsWith(
      `<button type="button" class="small quiet" data-copy-text="${record.replaceAll('=', '&#x3D;')}"`,
    ),
  )
  t.notMatch(added.html.split('<summary><code>').length, 3, 'shorter values are not collapsed')
  dns.set(name, [record.slice(0, 200)])
  const differs = await viewer.get(at('domains/mail.example.net?again=yes'))
  shows(t, differs, `different TXT · needed · cut short: 200 of ${record.length} characters`)
  const isMarked = differs.html.includes(`<mark>${record.slice(200).replaceAll('=', '&#x3D;')}</mark>`)
  t.ok(isMarked, 'the missing part is marked')
  const isCopied = differs.html.includes(`data-copy-text="${record.replaceAll('=', '&#x3D;')}"`)
  t.ok(isCopied, 'and the whole value copied')
  dns.set(name, ['v=DKIM1; p=somethingelse'])
  const dmarc = 'v=DMARC1; p=reject'
  dns.set('_dmarc.mail.example.net', [dmarc])
  const compared = await viewer.get(at('domains/mail.example.net?again=yes'))
  shows(t, compared, /mail\.example\.net DKIM differs Not verified/)
  shows(t, await viewer.get(at('domains')), /mail\.example\.net DKIM differs can’t send –/)
  shows(
    t,
    compared,
    /DKIM: signs your email different TXT · needed · a different key host .* value v=DKIM1; k=rsa; .* in DNS v=DKIM1; p=somethingelse /,
  )
  shows(t, compared, /DMARC: .* found · TXT .* value v=DMARC1; p=reject/)
  t.notMatch(textOf(compared.html), /p=none/, 'what is there is not suggested')
  shows(
    t,
    compared,
    /Bounces return to bounces\.example\.com SPF aligns no, unless .* The return path record is missing\./,
  )
  const lacks = await after(owner, await owner.post(at('domains/mail.example.net/verify')))
  shows(t, lacks, new RegExp(`${name} has another value in DNS`))
  dns.set(name, [record])
  const verified = await after(owner, await owner.post(at('domains/mail.example.net/verify')))
  shows(
    t,
    verified,
    /is verified\. You can send from this domain\..*mail\.example\.net verified Ready: you can send from this domain/,
  )
  shows(t, await viewer.get(at('domains')), /mail\.example\.net verified /)
  const page = at('domains/mail.example.net')
  for (const [texts, words, remedy] of [
    [['v=DKIM1; p=somethingelse'], 'DKIM differs', 'has another value\\. Replace it'],
    [[], 'DKIM missing', 'is missing\\. Add it'],
  ] as const) {
    dns.set(name, [...texts])
    const one = await owner.get(`${page}?again=yes`)
    const asks = remedy.replace(
      /\. (Replace|Add)/,
      (_, verb) => `. Ask an owner of the team to ${verb.toLowerCase()}`,
    )
    shows(t, await viewer.get(page), new RegExp(`the DKIM record ${asks}`))
    const list = await viewer.get(at('domains'))
    shows(t, list, new RegExp(`mail\\.example\\.net ${words} `))
    t.match(list.html, `<span class="tag bad">${words}</span>`)
    t.match(one.html, `<span class="tag bad">${words}</span>`)
    t.notMatch((await owner.get(page)).html, '/rekey"', 'a new key would need another record')
    shows(
      t,
      one,
      new RegExp(
        `mail\\.example\\.net ${words} You can send from this domain, but the DKIM record ${remedy}`,
      ),
    )
  }
  silent.add(name)
  dnsState.ahead += 61_000
  shows(t, await viewer.get(at('domains')), /mail\.example\.net verified /)
  await database.query(sql.unsafe`
    update domains set missing_since = now() where team_id = ${team.id} and name = 'mail.example.net'`)
  shows(t, await viewer.get(at('domains')), /mail\.example\.net DKIM missing or different /)
  silent.delete(name)
  shows(t, await after(owner, await owner.post(at('domains/mail.example.net/delete'))), 'was removed')
})

t.test('a domain stays verified while the record of its new key is missing', async (t) => {
  await owner.post(at('domains'), { name: 'new.key.test' })
  const page = at('domains/new.key.test')
  await publish(page)
  shows(t, await viewer.get(`${page}?again=yes`), 'An owner of the team can verify the domain now.')
  await owner.post(`${page}/verify`)
  await owner.press(page, `${page}/rekey`)
  shows(
    t,
    await owner.get(page),
    /new\.key\.test verified You can send from this domain\. For the new key, .* is missing\. Add it .* the old key signs\./,
  )
})

t.test('looks DNS records up again after a minute, or on request', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'asked-once.test' })).location ?? ''
  const asked = async (path: string) => {
    const before = dnsState.asked
    const seen = await viewer.get(path)
    return { seen, count: dnsState.asked - before }
  }
  t.not((await asked(page)).count, 0)
  dnsState.ahead += 30_000
  const { seen, count } = await asked(page)
  t.equal(count, 0)
  shows(t, seen, /Check again .* Last checked .* 3\d seconds ago/)
  const again = await asked(`${page}?again=yes`)
  t.not(again.count, 0)
  shows(t, again.seen, /Last checked .* just now/)
  dnsState.ahead += 61_000
  t.not((await asked(page)).count, 0)
})

t.test('a key is only rotated while its record is published', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'unpublished.test' })).location ?? ''
  const isOffered = async () => (await owner.get(`${page}?again=yes`)).html.includes('/rekey"')
  t.notOk(await isOffered(), 'not verified')
  await publish(page)
  await owner.post(`${page}/verify`)
  t.ok(await isOffered())
  await owner.press(page, `${page}/rekey`)
  t.notOk(await isOffered(), 'the next key has to be verified first')
})

t.test('a domain whose own return path the relay rejects refers to the operator', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'relay-says-no.test' })).location ?? ''
  await database.query(sql.unsafe`
    update domains set return_path = true where team_id = ${team.id} and name = 'relay-says-no.test'`)
  const rejected = { team_id: team.id, name: 'relay-says-no.test', response: '553 5.7.1 Not yours' }
  await recordRejectedReturnPaths(database, [rejected], new Date())
  shows(
    t,
    await owner.get(page),
    /SPF aligns no, unless .* The relay rejects the domain’s own return path\. Ask your operator to allow it\. Own return path rejected by the relay .* 553 5\.7\.1 Not yours/,
  )
})

t.test('a test team needs no DNS records', async (t) => {
  const test = await makeTeam(service, { domain: 'sandbox.test', test: true })
  const member = await signedIn(service, { team: test.id, role: 'viewer' })
  shows(t, await member.get(`/teams/${test.id}/domains`), /sandbox\.test verified /)
  const page = await member.get(`/teams/${test.id}/domains/sandbox.test`)
  shows(t, page, /sandbox\.test verified You can send from this domain\. A test team needs no DNS records\./)
})

t.test('concurrent confirmations rotate a DKIM key only once', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'rotated.test' })).location ?? ''
  await publish(page)
  await owner.post(`${page}/verify`)
  const form = { ...formTo((await owner.get(page)).html, `${page}/rekey`), confirmed: 'yes' }
  const presses = await Promise.all([1, 2].map(() => owner.post(`${page}/rekey`, form)))
  t.strictSame(presses.map(({ status }) => status).sort(), [303, 409])
  const refused = presses.find(({ status }) => status === 409)
  if (refused)
    shows(
      t,
      refused,
      /Someone else has rotated the key since this page was opened\. Review it, then try again\./,
    )
  t.notMatch((await owner.get(page)).html, '/rekey"')
})
