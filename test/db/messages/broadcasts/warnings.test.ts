/** Warnings about DMARC and the return path of a domain before a broadcast starts. */
import {
  domainByName,
  recordRejectedReturnPaths,
  storeReturnPath,
} from '../../../../db/accounts/domains/domains.sql.ts'
import { RequestError } from '../../../../db/errors.ts'
import type { BroadcastRow } from '../../../../db/messages/broadcasts/broadcasts.sql.ts'
import { startWarnings } from '../../../../db/messages/broadcasts/warnings.ts'
import { makeTeam } from '../../../support/service.ts'
import { shareService } from '../../../support/shared-service.ts'
import t from '../../../support/tap.ts'

const renewed = await shareService(t)

async function begin({ test = false } = {}) {
  const { database, ...service } = await renewed()
  const team = await makeTeam({ database, ...service }, { domain: 'news.corp.example', test })
  const row = { team_id: team.id, from_address: 'Acme <a@news.corp.example>' } as BroadcastRow
  const warnings = async (returnDomain: string | null, policies: Record<string, string> = {}) =>
    startWarnings(database, row, {
      returnDomain,
      lookupTxt: async (name) => (policies[name] === undefined ? [] : [policies[name]]),
    })
  return { database, team, row, warnings }
}

const POLICY = { '_dmarc.corp.example': 'v=DMARC1; p=reject' }

t.test('a domain without DMARC gets a warning', async (t) => {
  const { warnings } = await begin()
  const [first, ...others] = await warnings(null)
  t.match(first, /news\.corp\.example .*DMARC/)
  t.strictSame(others, [])
  t.strictSame(await warnings(null, POLICY), [])
})

t.test('warns about a return path of another organization', async (t) => {
  const { database, team, warnings } = await begin()
  const [first, ...others] = await warnings('bounces.example.net', POLICY)
  t.match(first, /bounces\.example\.net.*SPF.*An owner can turn on/)
  t.strictSame(others, [])
  t.strictSame(await warnings('bounces.corp.example', POLICY), [], 'of the same organization')
  const domain = await domainByName(database, team.id, 'news.corp.example')
  await storeReturnPath(database, team.id, domain?.id ?? '', true)
  t.strictSame(await warnings('bounces.example.net', POLICY), [])
  const rejected = { team_id: team.id, name: 'news.corp.example', response: '553 5.7.1 Not yours' }
  await recordRejectedReturnPaths(database, [rejected], new Date())
  const [last] = await warnings('bounces.example.net', POLICY)
  t.match(last, /bounces\.example\.net.*SPF.*The relay rejects the domain’s own return path\./)
})

t.test('test teams and DNS outages give no warning', async (t) => {
  const { warnings } = await begin({ test: true })
  t.strictSame(await warnings('bounces.example.net'), [])
  const { database, row } = await begin()
  const lookupTxt = async () => {
    throw new RequestError('unavailable', 'DNS does not respond')
  }
  t.strictSame(await startWarnings(database, row, { returnDomain: null, lookupTxt }), [])
})
