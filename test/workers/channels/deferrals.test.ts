/** Deferrals that may be about the sender: how they slow it, over two workers, and what ends that. */
import { listSenders } from '../../../db/delivery/senders/show.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { setJobsDue } from '../../support/rows.ts'
import { sendEmail, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

/** Starts a service with two workers and a relay with this reply to each recipient. */
async function begin(t: Test, reply: (to: string) => string | undefined) {
  const { service, team } = await world(t)
  const relay = { reply }
  const sink = await startSmtpSink(t, { onRcpt: (to) => relay.reply(to) })
  for (let worker = 0; worker < 2; worker++) await startWorker(t, service, { smtp_url: sink.url })
  const tried: string[] = []
  const send = async (to: string) => {
    const id = await sendEmail(service, team, { to: [to] })
    await until('it was tried', async () => (await eventsOfEmail(service.database, team.id, id)).length > 0)
    tried.push(id)
  }
  const sender = async () => (await listSenders(service.database))[0]
  return { service, relay, send, sender, tried }
}

t.test('six 4.7.x responses from three domains slow the sender', async (t) => {
  const { relay, send, sender, service, tried } = await begin(
    t,
    () => '451 4.7.1 Too busy for you, try again',
  )
  for (let at = 0; at < 5; at++) await send(`a@d${at % 3}.example`)
  t.not((await sender())?.state, 'slowed')
  await send('a@d9.example')
  await until('it is slowed', async () => (await sender())?.state === 'slowed')
  t.match((await sender())?.events, [{ kind: 'slowed', detail: /4\.7\.1/ }])
  relay.reply = () => undefined
  for (const id of tried) await setJobsDue(service, id)
  await until('it has its pace again', async () => (await sender())?.state === 'sending')
  t.match((await sender())?.events[0], { kind: 'recovered' })
})
