/** Large emails don't delay other emails, however slow the relay. */
import { randomBytes } from 'node:crypto'
import { sql } from 'slonik'
import { countRow } from '../../../db/postgres/rows.ts'
import { createEncodedFiles } from '../../../workers/channels/encoded-files.ts'
import { startDiscardingRelay } from '../../support/discarding-relay.ts'
import { type Service, sendEmails, type TestTeam, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const LARGE = 730_000

const upload = async ({ call }: Service, { key }: TestTeam, size: number) => {
  const { status, body } = await call('POST', '/v1/attachments?filename=a.bin', {
    key,
    raw: randomBytes(size),
  })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return { attachments: [{ attachment_id: String(body.id) }] }
}

/** Starts a relay that responds to no large email until it is released. */
async function startHolding(t: Test) {
  const held = Promise.withResolvers<void>()
  let holds = 0
  const relay = await startDiscardingRelay(t, {
    answering: async (subject) => {
      if (subject !== 'large') return
      holds += 1
      await held.promise
    },
  })
  const count = (subject: string) => relay.taken.filter((each) => each.subject === subject).length
  return { url: relay.url, count, holds: () => holds, letGo: held.resolve }
}

/** Returns the number of unclaimed jobs of large emails. */
const untouched = async ({ database }: Service): Promise<number> =>
  (
    await database.one(sql.type(countRow)`
      select count(*) as count from pgboss.job
      where name = 'deliver-email' and group_id = 'large' and state = 'created' and retry_count = 0`)
  ).count

t.test('large emails use half of the slots', async (t) => {
  const { service, team } = await world(t)
  const relay = await startHolding(t)
  const large = { subject: 'large', ...(await upload(service, team, LARGE)) }
  await sendEmails(service, team, Array(100).fill(large))
  await startWorker(t, service, { smtp_url: relay.url, concurrency: 4 })
  await until('large mail has its slots', () => relay.holds() === 2)
  await sendEmails(service, team, Array(20).fill({ subject: 'small' }))
  await until('the small ones are through', () => relay.count('small') === 20)
  t.equal(relay.count('large'), 0, 'no large one is')
  t.equal(relay.holds(), 2)
  const left = await untouched(service)
  t.ok(left >= 40, `${left} large ones wait in the queue`)
  relay.letGo()
  await until('the large ones are through', () => relay.count('large') === 100, 120)
})

t.test('small files don’t wait for large ones’ memory', async (t) => {
  const { service, team } = await world(t)
  const relay = await startHolding(t)
  const large: Record<string, unknown>[] = []
  while (large.length < 4) large.push({ subject: 'large', ...(await upload(service, team, LARGE)) })
  await sendEmails(service, team, large)
  const files = createEncodedFiles(service.database, LARGE)
  await startWorker(t, service, { smtp_url: relay.url, concurrency: 8, files })
  await until('one has the memory', () => relay.holds() === 1)
  const attached = { subject: 'attached', ...(await upload(service, team, 100)) }
  const emails = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? attached : { subject: 'bare' }))
  await sendEmails(service, team, emails)
  await until('the others are through', () => relay.count('attached') === 10 && relay.count('bare') === 10)
  t.equal(relay.holds(), 1)
  relay.letGo()
  await until('the large ones are through', () => relay.count('large') === 4, 60)
})
