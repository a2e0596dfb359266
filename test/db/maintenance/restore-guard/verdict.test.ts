/** A process's conclusion from the heartbeats in the database: a failover, a copy, or nothing yet. */

import type { HeartbeatResult } from '../../../../db/maintenance/restore-guard/restore-guard.sql.ts'
import { judgeDatabase, type Memory } from '../../../../db/maintenance/restore-guard/verdict.ts'
import t from '../../../support/tap.ts'

const TIMES = { every: 1_000, hold: 3_000, patience: 30_000 }
const AT = '2026-11-23T12:00:00.000Z'
const A_DAY_LATER = '2026-11-24T12:00:00.000Z'
const LATER = '2026-11-25T12:00:00.000Z'

/** Judges a process whose last check was a second ago. Only the given values have changed since. */
const verdictOn = (look: Partial<HeartbeatResult>, memory: Partial<Memory> = {}) => {
  const found: HeartbeatResult = {
    ...{ found: true, at: AT, is_home: true, is_same_place: true, home_id: 'one', how: 'begun' },
    ...look,
  }
  return judgeDatabase(found, { last: { mark: 7, at: AT }, original: 'one', away: 0, ...memory }, TIMES)
}
const judged = (look: Partial<HeartbeatResult>, memory: Partial<Memory> = {}): string =>
  verdictOn(look, memory).kind

const OTHER_TIMELINE = { is_home: false }
const NEW_PROCESS = { last: null, original: null }

t.test('the first process claims the database', async (t) => {
  t.equal(judged({ home_id: null, how: null, is_same_place: null }, NEW_PROCESS), 'new')
  t.equal(judged({}, NEW_PROCESS), 'original')
  t.equal(judged({}), 'original')
})

t.test('a heartbeat on a new timeline means a failover', async (t) => {
  t.equal(judged(OTHER_TIMELINE, { away: 0 }), 'undecided')
  t.equal(judged(OTHER_TIMELINE, { away: 3_000 }), 'continued')
})

t.test('a new timeline without a heartbeat means a copy', async (t) => {
  t.equal(judged(OTHER_TIMELINE, { ...NEW_PROCESS, away: 29_000 }), 'undecided')
  t.equal(judged(OTHER_TIMELINE, { ...NEW_PROCESS, away: 30_000 }), 'copy')
  t.equal(judged({ ...OTHER_TIMELINE, home_id: 'two' }, { away: 4_000 }), 'undecided', 'another life’s home')
})

t.test('a missing heartbeat stops the copy on any timeline', async (t) => {
  t.equal(judged({ found: false }), 'copy')
  t.equal(judged({ ...OTHER_TIMELINE, found: false }), 'copy')
  t.equal(judged({ found: false, home_id: 'two', how: 'continued' }), 'copy', 'others have missed nothing')
})

t.test("a late process doesn't pause a resumed copy again", async (t) => {
  t.equal(judged({ found: false, home_id: 'two', how: 'restored' }), 'unknown')
  t.equal(judged({ found: false, at: LATER }), 'unknown', 'its mark may have been forgotten meanwhile')
  t.equal(judged({ found: false, at: A_DAY_LATER }), 'copy')
  t.equal(judged({ found: false }, { original: null }), 'unknown')
  t.equal(judged({ found: false }, { last: null }), 'unknown')
  t.equal(judged({ found: false, how: 'restored' }), 'copy', 'it has itself seen that pause')
})

t.test('another server is a copy, even with all heartbeats', async (t) => {
  t.equal(judged({ is_home: false, is_same_place: false }), 'copy')
})

t.test('each copy has its own reason', async (t) => {
  const reasons = [
    verdictOn({ found: false }),
    verdictOn({ is_home: false, is_same_place: false }),
    verdictOn(OTHER_TIMELINE, { ...NEW_PROCESS, away: 30_000 }),
  ].map((verdict) => ('why' in verdict ? verdict.why : ''))
  t.notOk(reasons.includes(''))
  t.equal(new Set(reasons).size, 3)
})
