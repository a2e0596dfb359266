// The sweep and dead letters of WhatsApp. The queue may lose a job, but not its row.

import { eventsOfMessage } from '../../../../db/messages/whatsapp/events.sql.ts'
import { messageById } from '../../../../db/messages/whatsapp/messages.sql.ts'
import { openConsumer } from '../../../../db/queue/boss.ts'
import { requeueStale } from '../../../../workers/jobs/requeue-stale.ts'
import { cloudError } from '../../../sandbox/whatsapp.ts'
import { runClock, stopClock } from '../../../support/clock.ts'
import { startCloud } from '../../../support/cloud.ts'
import { ageByADay } from '../../../support/rows.ts'
import { world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import {
  jobOf,
  loseJobs,
  makeTemplate,
  numbers,
  sendWhatsapp,
  setDue,
  setTaken,
} from '../../../support/whatsapp.ts'
import { startWorker, until } from '../../../support/worker.ts'

const HOUR = 3_600_000
const { service, cli, team } = await world(t)
const template = await makeTemplate(service, team.id)

const send = (count: number) => sendWhatsapp(service, team, template.id, { to: numbers(count) })

t.test('requeues jobless messages, except accepted ones', async (t) => {
  const queue = await openConsumer(service.url, { connections: 3, onError: () => {} })
  t.teardown(() => queue.stop(1_000))
  const { database, log } = service.deps
  const sweep = async (now: Date): Promise<void> => {
    await stopClock(database, now)
    await requeueStale({ database, queue, log })
    await runClock(database)
  }
  const [lost = '', taken = ''] = await send(2)
  await loseJobs(service)
  await setTaken(service, taken)
  await sweep(new Date(Date.now() + 60_000))
  t.equal(await jobOf(service, lost), null, 'too early')
  await sweep(new Date(Date.now() + HOUR))
  t.match(await jobOf(service, lost), { state: 'created' })
  t.match(await messageById(database, team.id, lost), { status: 'queued', requeued_at: /Z$/ })
  t.match(await eventsOfMessage(database, team.id, lost), [{ kind: 'requeued' }])
  t.equal(await jobOf(service, taken), null)
  t.match(await messageById(database, team.id, taken), { requeued_at: null })
  await loseJobs(service)
})

t.test('queue redrive retries failed messages', async (t) => {
  const [id = ''] = await send(1)
  const refusing = await startCloud(t, {
    script: { onMessage: () => ({ status: 500, body: cloudError(131000, 'Down') }) },
  })
  const { stop } = await startWorker(t, service, { whatsapp: refusing.delivery })
  await until('it is put off', async () => (await jobOf(service, id))?.state === 'retry')
  await ageByADay(service, id)
  await setDue(service, [id])
  await until('it is given up', async () => (await jobOf(service, id))?.state === 'failed')
  await stop()
  t.match(await cli.json(['queue', 'redrive', 'deliver-whatsapp']), { redriven: 1 })
  const cloud = await startCloud(t)
  await startWorker(t, service, { whatsapp: cloud.delivery })
  await until(
    'it is taken',
    async () => (await messageById(service.database, team.id, id))?.accepted_at !== null,
  )
  t.match(await messageById(service.database, team.id, id), { requeued_at: /Z$/ })
  t.equal(cloud.messages().length, 1)
})
