/**
 * Checks verified domains again each night, so that owners learn of a missing DKIM key before email is marked as
 * spam. DNS queries use no database connection. A query without a response is ignored. A domain fails after two
 * misses a day apart, and recovers with one hit. Email is sent in any case. DECISIONS: Domains checked again.
 */
import { publish } from '../../channels/events/webhooks.ts'
import type { Database } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { idNow } from '../../process/ids.ts'
import type { Producer } from '../../queue/producer.ts'
import type { TxtLookup } from './dns-lookups.ts'
import { domainsToRecheck, type Recheck, recordRechecks } from './domains.sql.ts'
import { lookUpKey, type RecordCheck } from './verify.ts'

const RECHECK_BATCH = 50
/** The minimum time between two checks of a domain. A round may reach it earlier than in the previous night. */
const DAY_APART = 23 * 3_600_000

type RecheckDeps = { database: Database; lookupTxt: TxtLookup; queue: Pick<Producer, 'enqueue'> }

type Missed = RecordCheck & { state: 'missing' | 'different' }
const isMissed = (key: RecordCheck | null | undefined): key is Missed => key != null && key.state !== 'found'

type Failing = Awaited<ReturnType<typeof recordRechecks>>[number]

const toEvent = (
  { team_id, id, name, missing_since }: Failing,
  { state, ...record }: Missed,
  occurred_at: Date,
) => ({
  ...({ subject: 'domain', kind: 'failing', team_id, id, occurred_at } as const),
  detail: `the DKIM record ${record.name} ${state === 'different' ? 'has another value' : 'is missing'}`,
  about: { name, state, host: record.name, value: record.value, missing_since },
})

/** Checks the next batch. @returns how many, and how many are newly failing. Fewer than a batch at the end. */
async function recheckBatch({ database, lookupTxt, queue }: RecheckDeps) {
  const now = await serviceTime(database)
  const before = new Date(now.getTime() - DAY_APART)
  const domains = await domainsToRecheck(database, before, RECHECK_BATCH)
  if (domains.length === 0) return { checked: 0, failing: 0 }
  const keys = await Promise.all(domains.map((domain) => lookUpKey(domain, lookupTxt)))
  const rechecks = domains.map(({ team_id, id, dkim_selector }, index): Recheck => {
    const key = keys[index]
    return { team_id, id, dkim_selector, found: key ? key.state === 'found' : null }
  })
  const keyById = new Map(domains.map(({ id }, index) => [id, keys[index]]))
  const failing = await database.transaction(async (tx) => {
    const failing = await recordRechecks(tx, rechecks, { now, certain: before })
    const domainEvents = failing.flatMap((domain) => {
      const key = keyById.get(domain.id)
      return domain.has_listeners && isMissed(key) ? [toEvent(domain, key, now)] : []
    })
    await publish(tx, domainEvents)
    const notices = failing.map(({ team_id, id }) => ({ team_id, domain_id: id, notice_id: idNow() }))
    await queue.enqueue(tx, 'mail-owners', notices)
    return failing.length
  })
  return { checked: domains.length, failing }
}

/** Checks due domains until none is left, or for this many milliseconds. @returns how many, and how many fail. */
export async function recheckDomains(deps: RecheckDeps, patience: number) {
  const end = performance.now() + patience
  const all = { checked: 0, failing: 0 }
  do {
    const batch = await recheckBatch(deps)
    all.checked += batch.checked
    all.failing += batch.failing
    if (batch.checked < RECHECK_BATCH) break
  } while (performance.now() < end)
  return all
}
