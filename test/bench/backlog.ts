/** Rows 13c and 13d, repairs of a queue next to 200,000 waiting jobs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { type PickedCursor, pickedMessages, requeueMany } from '../../db/delivery/requeue.ts'
import { requeueLost } from '../../db/delivery/sweep.ts'
import { createProducer } from '../../db/queue/producer.ts'
import type { TestTeam } from '../support/service.ts'
import { type Figure, seconds, upTo } from './figures.ts'
import type { Place } from './rig.ts'

const LOST = 500
const REQUEUED = upTo(20_000)
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Deletes random waiting jobs, and measures the sweep that creates them again. */
async function measureSweep({ database }: Place): Promise<number> {
  const queue = createProducer()
  await database.query(sql.unsafe`
    delete from pgboss.job where name = 'deliver-email' and id in (
      select id from pgboss.job where name = 'deliver-email' order by md5(id::text) limit ${LOST})`)
  let found = 0
  const took = await seconds(async () => {
    const now = new Date()
    found = await requeueLost({ database, queue, now }, EMAIL, { before: now, most: LOST, patience: 60_000 })
  })
  if (found !== LOST) throw new Error(`the sweep found ${found} of ${LOST} lost jobs`)
  return took
}

/** Requeues emails in the batches of a background job. */
async function measureRequeue({ database }: Place, { id }: TestTeam): Promise<number> {
  const picked = { force: false, until: LAST_ID, at: new Date().toISOString() }
  const queue = createProducer()
  let changed = 0
  return seconds(async () => {
    let cursor: PickedCursor | null = null
    while (changed < REQUEUED) {
      const after: PickedCursor | null = cursor
      const batch = await database.transaction(async (tx) => {
        const found = await pickedMessages(tx, EMAIL, id, picked, after)
        const at = { tx, queue, secrets: null, now: new Date() }
        const requeued = await requeueMany(at, EMAIL, { teamId: id, ids: found.ids, force: false })
        return { changed: requeued.length, cursor: found.cursor }
      })
      changed += batch.changed
      cursor = batch.cursor
      if (cursor === null && changed < REQUEUED) throw new Error(`only ${changed} could be requeued`)
    }
  })
}

/** Measures both in a place with 200,000 waiting jobs of one team. */
export async function measureRepairs(place: Place, team: TestTeam): Promise<Figure[]> {
  const figure = (row: string, measure: string, ours: number, limit: number): Figure => ({
    ...{ row, measure, ours, reference: limit, unit: 's', ratio: ours / limit },
    goal: `≤ ${limit} s`,
    met: ours <= limit,
  })
  const swept = await measureSweep(place)
  await sleep(1_000)
  const requeued = await measureRequeue(place, team)
  return [
    figure('13c', 'requeue of 20,000 emails, 200,000 waiting', requeued, 5),
    figure('13d', 'sweep of 500 lost jobs, 200,000 waiting', swept, 0.5),
  ]
}
