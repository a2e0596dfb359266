/** Faults that the provider tells by webhook only: providers.md §1.2. Real hook, real queue, real workers. */
import t from 'tap'
import { bookSends } from '../../../db/senders/pace.ts'
import { pausedSenders } from '../../../db/senders/senders.sql.ts'
import { applyWhatsappEvents } from '../../../db/whatsapp/apply-events.ts'
import { hubSignature, statusWebhook } from '../../sandbox/whatsapp.ts'
import { loseJobs, storedReports } from '../../support/reports.ts'
import { makeTeam, startService, WHATSAPP_APP_SECRET } from '../../support/service.ts'
import { aMessage, jobOf, makeTemplate, rowsOf, templateOf } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

t.test(
  'a failure makes the template unsendable and pauses the number, as the answer would have',
  async (t) => {
    const service = await startService(t)
    const { database, call } = service
    const { id: team, key } = await makeTeam(service)
    const template = await makeTemplate(service, team)
    const send = async () =>
      (await call('POST', '/v1/whatsapp/messages', { key, body: aMessage(template.id) })).body
    const { data } = await send()
    await bookSends(database, { key: 'whatsapp:100', ceiling: 80 }, [1], 1)
    await startWorker(t, service)
    const fail = async (id: string, code: number, seconds_ago: number): Promise<void> => {
      const told = statusWebhook('100', [
        {
          id,
          status: 'failed',
          recipient_id: '15555550101',
          biz_opaque_callback_data: `${team}:${data[0].id}`,
          timestamp: String(Math.floor(Date.now() / 1_000) - seconds_ago),
          errors: [{ code, title: 'Words' }],
        },
      ])
      const raw = JSON.stringify(told)
      const headers = { 'X-Hub-Signature-256': hubSignature(WHATSAPP_APP_SECRET, raw) }
      t.equal((await call('POST', '/hooks/whatsapp', { raw, headers })).status, 200)
      await until('it is read', async () =>
        (await storedReports(service)).every(({ state }) => state !== 'pending'),
      )
    }
    const pauses = () => pausedSenders(database)

    await fail('wamid.1', 131042, 301)
    t.same(await pauses(), [], 'too old: its pause would be over')
    // As its answer would: taken, and its job over.
    const ref = { team_id: team, message_id: data[0].id }
    await database.transaction((tx) =>
      applyWhatsappEvents(tx, [
        {
          ...ref,
          event_key: 'taken',
          kind: 'accepted',
          occurred_at: new Date(),
          detail: '',
          provider_message_id: 'wamid.2',
        },
      ]),
    )
    await loseJobs(service, [data[0].id])
    await fail('wamid.other', 131042, 0)
    t.match(await rowsOf(service, team), [{ provider_message_id: 'wamid.2' }], 'of an earlier try')
    await fail('wamid.2', 131042, 0)
    t.match(await pauses(), [{ key: 'whatsapp:100', pause_reason: '131042 Words' }])
    t.match(
      await rowsOf(service, team),
      [{ status: 'queued', accepted_at: null, provider_message_id: null }],
      'an account at fault fails no message',
    )
    t.match(await jobOf(service, data[0].id), { state: 'created' }, 'it is to be sent again')
    t.match(await templateOf(service, template.id), { status: 'approved', fault: null })
    await fail('wamid.3', 132015, -2)
    t.match(await templateOf(service, template.id), { status: 'paused', fault: '132015 Words' })
    t.equal((await send()).error.code, 'template_disabled')
    t.match(await rowsOf(service, team), [{ status: 'failed' }])
  },
)
