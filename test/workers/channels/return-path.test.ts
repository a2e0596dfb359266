/** Return paths of domains, and their rejection by a relay. Real workers and SMTP. */
import { rejectedReturnPaths } from '../../../db/accounts/domains/domains.sql.ts'
import { setEd25519, setReturnPath } from '../../../db/accounts/domains/options.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { byCli, makeTeam, sendEmail } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const RETURN_DOMAIN = 'bounces.example.net'
const OWN = /^b-[0-9a-z]{62}@bounces\.example\.com$/
const SHARED = /^b-[0-9a-z]{62}@bounces\.example\.net$/

/** DNS records for a domain's own return path. */
const LOOKS = {
  lookupTxt: async () => ['v=spf1 -all'],
  lookupCname: async () => [RETURN_DOMAIN],
  lookupMx: async () => ['mx.example.net'],
  returnDomain: RETURN_DOMAIN,
}

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}) {
  const service = await renewed()
  const { database } = service
  const sink = await startSmtpSink(t, script)
  const team = await makeTeam(service)
  const turn = async (on: boolean) =>
    setReturnPath({ ...LOOKS, ...byCli(database), database }, team.id, { name: 'example.com', on })
  await startWorker(t, service, { smtp_url: sink.url, return_domain: RETURN_DOMAIN })
  const sent = async (): Promise<string> => {
    const id = await sendEmail(service, team)
    await until('it is sent', async () => (await emailById(database, team.id, id))?.status === 'sent')
    return sink.last().mail_from
  }
  return { service, database, sink, team, turn, sent }
}

t.test('bounces return to the domain’s own return path', async (t) => {
  const { turn, sent } = await begin(t)
  t.match(await sent(), SHARED)
  await turn(true)
  t.match(await sent(), OWN)
  await turn(false)
  t.match(await sent(), SHARED)
})

const REJECTIONS = {
  'MAIL for good': { onMail: (from: string) => (OWN.test(from) ? '553 5.7.1 Not your address' : undefined) },
  'MAIL for now': { onMail: (from: string) => (OWN.test(from) ? '450 4.1.8 Domain not found' : undefined) },
  RCPT: {
    onRcpt: (_: string, from: string) =>
      OWN.test(from) ? `553 5.7.1 <${from}>: Sender address rejected: not owned by user` : undefined,
  },
}

for (const [stage, script] of Object.entries(REJECTIONS))
  t.test(`a return path rejected at ${stage} is not used`, async (t) => {
    const { database, sink, turn, sent } = await begin(t, script)
    await turn(true)
    t.match(await sent(), SHARED)
    t.equal(sink.messages().length, 1)
    const [rejected, ...others] = await rejectedReturnPaths(database, 10)
    t.match(rejected, { name: 'example.com', response: /^(553 5\.7\.1|450 4\.1\.8) / })
    t.equal(others.length, 0)
    t.match(await sent(), SHARED)
    await turn(true)
    t.strictSame(await rejectedReturnPaths(database, 10), [], 'turning it on again tries it again')
  })

t.test('emails have two signatures while the second key is on', async (t) => {
  const { database, service, sink, team, sent } = await begin(t)
  const turn = async (on: boolean) =>
    setEd25519({ ...byCli(database), secrets: service.deps.secrets }, team.id, { name: 'example.com', on })
  const algorithms = async () => {
    await sent()
    return `${sink.last().raw}`.match(/\ba=[a-z0-9-]+;/g)
  }
  await turn(true)
  t.strictSame(await algorithms(), ['a=rsa-sha256;', 'a=ed25519-sha256;'])
  await turn(false)
  t.strictSame(await algorithms(), ['a=rsa-sha256;'])
})
