/** Emails whose domain is removed while they wait. DECISIONS: Domain removed before delivery. */
import { addDomain } from '../../../db/accounts/domains/add.ts'
import { deleteDomain, domainByName } from '../../../db/accounts/domains/domains.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { emailStatus, setDue } from '../../support/reports.ts'
import { byCli, makeTeam, sendEmail, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

t.test('a removed domain’s email waits until it is verified again', async (t) => {
  const { service, team, send } = await world(t)
  const other = await makeTeam(service)
  const sink = await startSmtpSink(t)
  const [waiting, fine] = [await send(), await sendEmail(service, other)]
  await deleteDomain(service.database, team.id, 'example.com')
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the other team’s mail is sent', async () => (await emailStatus(service, fine)) === 'sent')
  const reasons = async () =>
    (await eventsOfEmail(service.database, team.id, waiting)).map(({ kind, detail }) => `${kind}: ${detail}`)
  await until('it is put off', async () => (await reasons()).length > 0)
  t.match((await reasons())[0], /^deferred: .*example\.com is no longer a verified domain/)

  const add = (verified: boolean) =>
    service.database.transaction((tx) =>
      addDomain({ ...byCli(tx), secrets: service.deps.secrets }, team.id, { name: 'example.com', verified }),
    )
  await add(false)
  await setDue(service, 'deliver-email')
  await until('it is put off again', async () => (await reasons()).length > 1)
  t.equal(sink.messages().length, 1, 'a domain that is only pending signs nothing')

  await deleteDomain(service.database, team.id, 'example.com')
  await add(true)
  await setDue(service, 'deliver-email')
  await until('it is sent', async () => (await emailStatus(service, waiting)) === 'sent')
  const domain = await domainByName(service.database, team.id, 'example.com')
  const raw =
    sink
      .messages()
      .find((message) => message.raw.includes(waiting))
      ?.raw.toString() ?? ''
  const unfolded = raw.replace(/\s+/g, '')
  t.match(unfolded, new RegExp(`^DKIM-Signature:.*d=example\\.com;.*s=${domain?.dkim_selector};`))
})
