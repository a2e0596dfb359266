// The sandbox's Cloud API: its magic numbers, end to end through our API, worker and hook, and the inbox's
// list.

import { startCloud } from '../support/cloud.ts'
import { WHATSAPP_APP_SECRET, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { jobOf, makeTemplate, rowsOf, sendWhatsapp, setDue } from '../support/whatsapp.ts'
import { startWorker, until } from '../support/worker.ts'
import { startInbox } from './inbox.ts'
import { DEMO_TEMPLATE, magicNumbers } from './whatsapp-magic.ts'

t.test('each magic number ends as documented', async (t) => {
  const { service, team } = await world(t)
  const { id, slots } = await makeTemplate(service, team.id, DEMO_TEMPLATE)
  t.same(slots, ['header:1', 'body:1', 'body:2', 'url:1'])
  const webhook = { url: `${service.base}/hooks/whatsapp`, app_secret: WHATSAPP_APP_SECRET }
  const cloud = await startCloud(t, {
    script: magicNumbers(),
    webhook,
    report_pause: 50,
    templates: [DEMO_TEMPLATE],
  })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const parameters = Object.fromEntries(slots.map((slot) => [slot, 'x']))
  const to = [1, 2, 3, 4, 5, 6, 7].map((digit) => `+1555555010${digit}`)
  await sendWhatsapp(service, team, id, { to, parameters })
  const rows = () => rowsOf(service, team.id)
  const expected = ['delivered', 'read', 'failed', 'failed', 'delivered', 'delivered', 'queued']
  await until('all have ended', async () => {
    await setDue(
      service,
      (await rows()).map((row) => row.id),
    )
    return (await rows()).every(({ status }, index) => status === expected[index])
  })
  const silent = (await rows()).at(-1)
  t.ok(silent?.accepted_at, 'taken, never reported')
  t.equal(await jobOf(service, silent?.id ?? ''), null)
  const tries = (digit: number) =>
    cloud.messages().filter(({ body }) => body.to === `+1555555010${digit}`).length
  t.same([1, 4, 5, 6].map(tries), [1, 1, 3, 2])
})

t.test('the inbox shows WhatsApp messages as a phone would', async (t) => {
  const cloud = await startCloud(t, { script: magicNumbers() })
  const inbox = await startInbox({
    port: 0,
    sandbox: { messages: () => [], clear: () => {} },
    whatsapp: cloud,
    templates: [DEMO_TEMPLATE],
  })
  t.teardown(() => inbox.close())
  const { outgoingWhatsapp } = await import('../support/cloud.ts')
  await cloud.delivery.provider.send(
    outgoingWhatsapp({ body: [{ name: null, value: '<script>alert(1)</script>' }] }),
  )
  const base = `http://127.0.0.1:${inbox.port}`
  const listed = await (await fetch(`${base}/whatsapp`)).json()
  t.match(listed, [{ to: '+15555550101', template: { name: 'order_ready' }, id: /^wamid\./ }])
  const page = await (await fetch(`${base}/phone`)).text()
  t.match(page, /\+15555550101/)
  t.match(page, /Hello &lt;script&gt;/, 'filled and escaped')
  t.notMatch(page, /<script>/)
  t.equal((await fetch(`${base}/whatsapp`, { method: 'DELETE' })).status, 204)
  t.same(await (await fetch(`${base}/whatsapp`)).json(), [])
})
