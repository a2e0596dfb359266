/**
 * One queue's messages through many senders, as with customers' own servers: emails, each through the sender
 * that its recipient's domain names. Real delivery over a real SMTP server.
 */
import { sql } from 'slonik'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { listSenders, resumeSender } from '../../../db/delivery/senders/show.ts'
import { createPlainTexts } from '../../../db/process/plain-texts.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { createQueuePauses } from '../../../db/queue/pauses.ts'
import { emailChannel } from '../../../workers/channels/deliver-email.ts'
import { createEncodedFiles } from '../../../workers/channels/encoded-files.ts'
import { IN_FLIGHT_PER_SEND } from '../../../workers/delivery/breaker.ts'
import type { DeliveryChannel } from '../../../workers/delivery/channel.ts'
import { startDelivery } from '../../../workers/delivery/engine.ts'
import type { Yielding } from '../../../workers/delivery/queue-priority.ts'
import { createSlots } from '../../../workers/delivery/slots.ts'
import { createSmtpProvider } from '../../../workers/providers/smtp/adapter.ts'
import { jobStates } from '../../support/rows.ts'
import { pauseSender } from '../../support/senders.ts'
import { byCli, type Service, sendEmails, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const SLOTS = 8
const AT_ONCE = 4

const senderOf = (name: string) => ({
  key: `endpoint:${name}.test`,
  ceiling: 1_000,
  on_demand: true,
  at_once: AT_ONCE,
})

async function begin(
  t: Test,
  sink: Parameters<typeof startSmtpSink>[1] = {},
  yielding: Partial<Yielding> = {},
) {
  const { service, team } = await world(t)
  const { url } = await startSmtpSink(t, sink)
  const names = new Map<string, string>()
  /** Posts emails. Their jobs name their sender, like those of webhooks, unless `grouped` is false. */
  const post = async (name: string, count: number, { grouped = true } = {}): Promise<string[]> => {
    const ids = await sendEmails(service, team, Array(count).fill({ to: [`a@${name}.test`] }))
    for (const id of ids) names.set(id, name)
    if (grouped)
      await service.database.query(sql.unsafe`
        update pgboss.job set group_id = ${senderOf(name).key} where id = any(${sql.array(ids, 'uuid')})`)
    return ids
  }
  return { service, post, start: () => startMany(t, service, { url, names, yielding }) }
}

/** Delivers emails with a sender per recipient domain. */
async function startMany(
  t: Test,
  { database, deps, url: database_url }: Service,
  { url, names, yielding }: { url: string; names: ReadonlyMap<string, string>; yielding: Partial<Yielding> },
): Promise<void> {
  const queue = await openConsumer(database_url, { connections: 3, onError: () => {} })
  const email = createSmtpProvider({ url, max_connections: SLOTS })
  const pauses = createQueuePauses(database)
  const files = createEncodedFiles(database, 1024 * 1024)
  const rules = {
    return_domain: null,
    simulated_recipients: false,
    retry_ms: 86_400_000,
    sent_counts_ms: 86_400_000,
  }
  const texts = createPlainTexts()
  const own = { ...deps, texts, queue, email, pauses, files, ...rules }
  const single = emailChannel(EMAIL, own)
  const channel: typeof single = {
    ...single,
    senders: { prefix: 'endpoint:' },
    async read(jobs) {
      const batch = [...(await single.read(jobs))]
      return new Map(
        batch.map(([job, outgoing]) => [
          job,
          { ...outgoing, sender: senderOf(names.get(outgoing.ref.id) ?? '') },
        ]),
      )
    },
  } satisfies DeliveryChannel<'deliver-email', unknown>
  const share = createSlots(SLOTS).share()
  const slots = { ...share, yielding: { ...share.yielding, ...yielding } }
  const delivery = startDelivery(channel, own, slots)
  t.teardown(async () => {
    queue.close()
    await delivery.drain(5_000)
    await queue.stop(5_000)
    await email.close()
    await texts.close()
  })
}

const allSent = async ({ database }: Service, ids: readonly string[]): Promise<boolean> =>
  (
    await database.anyFirst(sql.unsafe`
    select status from emails where id = any(${sql.array([...ids], 'uuid')}) and status <> 'sent'`)
  ).length === 0

t.test('a paused sender uses no attempt, and others send', async (t) => {
  const seen: string[] = []
  const { service, post, start } = await begin(t, { onRcpt: (to) => void seen.push(to) })
  const { database } = service
  await database.transaction((tx) => pauseSender(tx, senderOf('paused'), 60, 'Retry-After: 60'))
  const waiting = await post('paused', 20, { grouped: false })
  const grouped = await post('paused', 20)
  const flowing = await post('well', 30)
  await start()
  await until('the others are sent', () => allSent(service, flowing))
  for (const id of grouped) t.strictSame(await jobStates(service, id), ['created'])
  const statesOf = async (ids: readonly string[]) =>
    (await Promise.all(ids.map((id) => jobStates(service, id)))).flat()
  await until('what was claimed is put back', async () =>
    (await statesOf(waiting)).every((state) => state === 'created'),
  )
  const attempts = await database.oneFirst(sql.unsafe`
    select max(retry_count) from pgboss.job where id = any(${sql.array(grouped, 'uuid')})`)
  t.equal(attempts, 0, 'a job that names its sender is not even claimed')
  t.notOk(seen.some((to) => to.includes('paused')))
  await database.transaction((tx) => resumeSender(byCli(tx), 'endpoint:paused.test'))
  // Some may be in progress already.
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() where id = any(${sql.array(waiting, 'uuid')}) and state < 'active'`)
  await until('its own go out too', () => allSent(service, [...waiting, ...grouped]))
})

t.test('pauses and probes a failing sender while others send', async (t) => {
  let refusing = true
  const { service, post, start } = await begin(t, {
    onRcpt: (to) => (refusing && to.includes('broken') ? '554 5.7.1 Not from you' : undefined),
  })
  const broken = await post('broken', 10)
  const flowing = await post('well', 40)
  await start()
  const state = async (name: string) =>
    (await listSenders(service.database)).find(({ key }) => key === senderOf(name).key)?.state
  await until('it is paused', async () => (await state('broken')) === 'paused')
  await until('the others are sent', () => allSent(service, flowing))
  t.equal(await state('well'), undefined, 'nothing was ever wrong with theirs')
  refusing = false
  await until('it has recovered, and its own are sent', () => allSent(service, broken))
  t.equal(await state('broken'), 'sending')
})

t.test('a hanging sender gets one slot', async (t) => {
  const hanging = Promise.withResolvers<undefined>()
  const held = Promise.withResolvers<undefined>()
  const open = { slow: 0, quick: 0 }
  let most = 0
  const { service, post, start } = await begin(t, {
    async onMessage({ rcpt_to }) {
      const name = rcpt_to[0]?.includes('slow') ? 'slow' : 'quick'
      open[name] += 1
      if (name === 'slow') await hanging.promise
      most = Math.max(most, open.quick)
      if (open.quick === AT_ONCE) held.resolve(undefined)
      // Once it is proven, all it may have are in flight together.
      if (name === 'quick' && proved++ > 0) await held.promise
      open[name] -= 1
      return undefined
    },
  })
  let proved = 0
  const slow = await post('slow', 20)
  const quick = await post('quick', 30)
  await start()
  await until('the quick are sent', () => allSent(service, quick))
  t.equal(open.slow, 1)
  t.equal(most, AT_ONCE)
  const claimed = await service.database.oneFirst(sql.unsafe`
    select count(*) from pgboss.job
    where id = any(${sql.array(slow, 'uuid')}) and (state = 'active' or retry_count > 0)`)
  t.equal(claimed, IN_FLIGHT_PER_SEND.unknown, 'nothing is claimed to be put back')
  hanging.resolve(undefined)
  await until('the slow are sent', () => allSent(service, slow))
})

t.test('a yielding queue claims and reports only the allowed number', async (t) => {
  const state = { most: 0, looks: 0 }
  const claims: { count: number; asked: number }[] = []
  const { service, post, start } = await begin(
    t,
    {},
    {
      claimable: () => {
        state.looks += 1
        return state.most
      },
      claimed(count, asked) {
        claims.push({ count, asked })
        state.most = 0
      },
    },
  )
  const ids = await post('well', 10)
  await start()
  await until('it has looked, and looked again', () => state.looks > 1)
  t.strictSame(claims, [], 'it may claim none')
  state.most = 3
  await until('it has claimed', () => claims.length > 0)
  t.strictSame(claims, [{ count: 3, asked: 3 }])
  const sent = async () =>
    Number(
      await service.database.oneFirst(sql.unsafe`
    select count(*) from emails where id = any(${sql.array(ids, 'uuid')}) and status = 'sent'`),
    )
  await until('those are sent', async () => (await sent()) === 3)
  const looked = state.looks
  await until('it has looked again', () => state.looks > looked + 1)
  t.equal(await sent(), 3, 'the others wait')
  state.most = 100
  await until('all are sent', () => allSent(service, ids))
})
