/** The provider's list against its concurrent reports, and an endless list. Real worker, real queue. */
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { applyReportedTemplates } from '../../../db/messages/whatsapp/apply-template-events.ts'
import { awaitSync, requestSync } from '../../../db/messages/whatsapp/sync-templates.ts'
import { createWhatsappProvider } from '../../../workers/providers/whatsapp/cloud.ts'
import type { WhatsappDelivery, WhatsappProvider } from '../../../workers/providers/whatsapp/provider.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { startFlood } from '../../support/flood.ts'
import { freePort } from '../../support/free-port.ts'
import { portOf } from '../../support/port.ts'
import { type Service, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t, { type Test } from '../../support/tap.ts'
import { aTemplate, type Json, makeTemplate, templateOf } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

/** A provider over a list that a test writes page by page. */
async function startList(t: Test, onPage: (response: ServerResponse) => unknown, list_timeout_ms?: number) {
  const server = createServer(async (_request, response) => void (await onPage(response)))
  return listFrom(`http://127.0.0.1:${await portOf(t, server)}`, list_timeout_ms)
}

const listFrom = (url: string, list_timeout_ms?: number) =>
  createWhatsappProvider({ url, ...(list_timeout_ms === undefined ? {} : { list_timeout_ms }) })

const ACCOUNT = { account_id: '2', access_token: 'a-token' }

/** Syncs a team's templates and waits for the result. */
const sync = async ({ database, deps: { queue } }: Service, team: string) => {
  const id = await requestSync({ tx: database, now: new Date(), actor: null, queue }, team)
  return awaitSync(database, team, id)
}

const over = (provider: WhatsappProvider): WhatsappDelivery => ({
  provider,
  number: { ...ACCOUNT, phone_number_id: '1', messages_per_second: 80 },
  unknown_wait: 1,
  begin: async () => {},
})

const page = (data: readonly Json[], more = false): string =>
  JSON.stringify({
    data,
    paging: { cursors: { after: String(Math.random()) }, ...(more ? { next: 'x' } : {}) },
  })

t.test('a report during the listing is newer than the list', async (t) => {
  const { service, database, team } = await worldOf(await renewed())
  const [reported, other] = [aTemplate(), aTemplate()]
  const ids = [await makeTemplate(service, team.id, reported), await makeTemplate(service, team.id, other)]
  const { name, language } = reported as { name: string; language: string }
  const report = async (status: 'paused', occurred_at: Date) =>
    await database.transaction((tx) =>
      applyReportedTemplates(
        tx,
        [{ name, language, account_id: null, number: null, status, occurred_at }],
        occurred_at,
      ),
    )
  const provider = await startList(t, async (response) => {
    await report('paused', new Date(Date.now() + 1_000))
    response.end(page([reported, { ...other, status: 'DISABLED' }]))
  })
  await startWorker(t, service, { whatsapp: over(provider) })
  await sync(service, team.id)
  t.match(await templateOf(service, ids[0]?.id ?? ''), { status: 'paused' })
  t.match(await templateOf(service, ids[1]?.id ?? ''), { status: 'disabled' })
})

t.test('a template shows when it was last listed', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const listed = aTemplate()
  await makeTemplate(service, team.id, listed)
  await makeTemplate(service, team.id, aTemplate())
  const provider = await startList(t, (response) => response.end(page([listed])))
  await startWorker(t, service, { whatsapp: over(provider) })
  const before = new Date()
  const { templates } = await sync(service, team.id)
  const [first, other] = templates
  t.equal(other?.synced_at, null, 'the provider does not list it')
  t.ok(new Date(first?.synced_at ?? 0) >= before)
  const [again] = (await sync(service, team.id)).templates
  t.ok(new Date(again?.synced_at ?? 0) > new Date(first?.synced_at ?? 0))
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const list = `/teams/${team.id}/whatsapp-templates`
  shows(t, await viewer.get(list), /Last sync: (just now|.* ago)\./)
  const { html } = await viewer.get(`${list}/${first?.id}`)
  t.match(html, `<time datetime="${again?.synced_at}"`)
  shows(t, await viewer.get(`${list}/${other?.id}`), 'Last sync never')
})

t.test('a list of any length has one time limit', async (t) => {
  const silent = await startList(t, () => undefined, 300)
  await t.rejects(silent.listTemplates(ACCOUNT), { message: 'the template list took longer than 0.3 s' })
  const endless = await startList(
    t,
    async (response) => {
      await sleep(20)
      response.end(page([], true))
    },
    300,
  )
  await t.rejects(endless.listTemplates(ACCOUNT), { message: 'the template list took longer than 0.3 s' })
})

t.test('a page has a byte limit and is never decompressed', async (t) => {
  const endless = await startFlood(t, 'endless')
  const words = 'the template list cannot be read: '
  await t.rejects(listFrom(endless.url).listTemplates(ACCOUNT), {
    message: `${words}the response is larger than 4 MiB`,
  })
  await until('it is cut off', async () => endless.cut() === 1)
  const packed = await startFlood(t, 'packed')
  await t.rejects(listFrom(packed.url).listTemplates(ACCOUNT), {
    message: `${words}the response is compressed, although the request forbids it`,
  })
})

t.test("a manual sync shows why a host didn't respond", async (t) => {
  const { service, database, team } = await worldOf(await renewed())
  const port = await freePort()
  const whatsapp = over(listFrom(`http://127.0.0.1:${port}`))
  await startWorker(t, service, { whatsapp })
  const { queue } = service.deps
  const sync_id = await requestSync({ tx: database, now: new Date(), actor: null, queue }, team.id)
  await t.rejects(awaitSync(database, team.id, sync_id), {
    message: `Could not sync the templates: the template list cannot be fetched from 127.0.0.1:${port}: ECONNREFUSED`,
  })
})
