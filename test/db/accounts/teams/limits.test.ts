/** The pure rules of quota, period and bucket for a team's row. */
import { computeBurst } from '../../../../db/accounts/plans/defaults.ts'
import {
  buildCharge,
  currentPeriod,
  firstAllowance,
  left,
  storageError,
  toAccount,
} from '../../../../db/accounts/teams/limits.ts'
import { rateReached, toLimitState } from '../../../../db/accounts/teams/rate-limit.ts'
import { type AccountRow, savingAllowances } from '../../../../db/accounts/teams/teams.sql.ts'
import t from '../../../support/tap.ts'

const NOW = '2026-02-10T12:00:00.000Z'
const PLACES = {
  email_place: 1,
  email_batch_place: 2,
  broadcast_place: 3,
  whatsapp_place: 4,
  whatsapp_batch_place: 5,
  whatsapp_parts_place: 6,
  whatsapp_parts_batch_place: 7,
}
const ROW: AccountRow = {
  team_id: '0190a000-0000-7000-8000-000000000000',
  plan: 'pro',
  plan_kind: 'paid',
  test: false,
  email_limit: 50,
  contact_limit: 20,
  whatsapp_limit: 7,
  send_rate_per_second: 2,
  storage_gb: 3,
  subscription_start: '2026-01-20T00:00:00.000Z',
  subscription_end: '2026-02-20T00:00:00.000Z',
  period_start: '2026-01-20T00:00:00.000Z',
  period_end: '2026-02-20T00:00:00.000Z',
  emails_used: 11,
  contacts_used: 12,
  whatsapp_used: 13,
  storage_used: 14,
  bucket_tokens: 1,
  refilled_at: '2026-02-10T11:59:58.500Z',
  ...PLACES,
  now: NOW,
}
const account = (changes: Partial<AccountRow> = {}) => toAccount({ ...ROW, ...changes })

t.test('returns the account with its bucket refilled', async (t) => {
  t.strictSame(account(), {
    plan: 'pro',
    test: false,
    limits: { emails: 50, contacts: 20, whatsapp: 7, rate: 2, storage: 3_000_000_000 },
    period: { start: new Date(ROW.period_start), end: new Date(ROW.period_end) },
    used: { emails: 11, whatsapp: 13, contacts: 12, storage: 14 },
    bucket: { tokens: 4, refilled_at: new Date(NOW) },
    places: {
      email: 1,
      email_batch: 2,
      broadcast: 3,
      whatsapp: 4,
      whatsapp_batch: 5,
      whatsapp_parts: 6,
      whatsapp_parts_batch: 7,
    },
    now: new Date(NOW),
  })
  t.match(account({ test: true, storage_gb: null }), { test: true, limits: { storage: null } })
  t.equal(account({ storage_gb: 1e-9 / 2 }).limits.storage, 0, 'half a byte is none')
})

t.test('an ended period rolls over and is counted again', async (t) => {
  const rolled = account({ now: ROW.period_end })
  t.strictSame(rolled.period, { start: new Date(ROW.period_end), end: new Date('2026-03-20T00:00:00.000Z') })
  t.strictSame(rolled.used, { emails: 0, whatsapp: 0, contacts: 12, storage: 14 })
  t.equal(account({ now: '2026-02-19T23:59:59.999Z' }).used.emails, 11)
  const moved = {
    subscription_start: '2026-01-20T00:00:00.000Z',
    subscription_end: '2026-02-25T00:00:00.000Z',
  }
  t.equal(account({ ...moved, now: ROW.period_end }).used.emails, 11, 'one that goes on longer is the same')
  const later = {
    subscription_start: '2026-02-05T00:00:00.000Z',
    subscription_end: '2026-03-05T00:00:00.000Z',
  }
  t.equal(account(later).used.emails, 11, 'what was begun is counted to its end')
})

t.test('treats a time before the period as its start', async (t) => {
  const early = account({ now: '2026-01-19T00:00:00.000Z' })
  t.strictSame([early.now, early.used.emails], [new Date(ROW.period_start), 11])
})

t.test("uses the subscription's period, or the calendar month", async (t) => {
  const month = { start: new Date('2026-02-01'), end: new Date('2026-03-01') }
  const now = new Date(NOW)
  t.strictSame(currentPeriod({ ...ROW, plan_kind: 'free' }, now), month)
  t.strictSame(currentPeriod({ ...ROW, subscription_start: null }, now), month)
  t.strictSame(currentPeriod({ ...ROW, subscription_end: null }, now), month)
  t.strictSame(currentPeriod(ROW, now), { start: new Date(ROW.period_start), end: new Date(ROW.period_end) })
})

t.test('the bucket has five seconds of the rate, and errors include the wait', async (t) => {
  t.equal(computeBurst(2), 10)
  t.equal(account({ refilled_at: '2026-02-01T00:00:00.000Z' }).bucket.tokens, 10)
  const empty = { bucket_tokens: -3, refilled_at: NOW }
  t.equal(rateReached(account({ ...empty, send_rate_per_second: 3 })).retry_after, 2, 'rounded up')
  t.equal(rateReached(account()).retry_after, 1, 'never none')
  t.match(rateReached(account(empty)), {
    code: 'rate_limited',
    retry_after: 2,
    limit_state: { rate: 2, capacity: 10, tokens: -3 },
  })
})

t.test('returns the remaining rate and quota, with the time left', async (t) => {
  const limit_state = { rate: 2, capacity: 10, tokens: 4 }
  const quota = { limit: 50, left: 39, period_seconds: 31 * 86_400, seconds_left: 9.5 * 86_400 }
  t.strictSame(toLimitState(account()), { ...limit_state, quota })
  t.strictSame(toLimitState(account({ email_limit: null })), { ...limit_state, quota: null })
})

t.test('the remaining quota is never negative', async (t) => {
  t.strictSame([left(5, 3), left(5, 5), left(5, 7), left(0, 0)], [2, 0, 0, 0])
  t.equal(left(null, 7), Number.POSITIVE_INFINITY)
})

t.test('storage accepts exactly the bytes that fit', async (t) => {
  const full = { storage_gb: 1e-7, storage_used: 90 }
  t.equal(storageError(account(full), 10), null)
  t.match(storageError(account(full), 11), { code: 'quota_exceeded', message: /100 bytes, 90 .* 11 / })
  t.equal(storageError(account({ ...full, storage_used: 200 }), 0), null)
  t.equal(storageError(account({ storage_gb: null }), 1e12), null)
})

t.test('saves the account with a charge', async (t) => {
  const saved = {
    ...{ period_start: ROW.period_start, period_end: ROW.period_end, refilled_at: NOW, bucket_tokens: 4 },
    ...{ emails_used: 11, contacts_used: 12, whatsapp_used: 13, storage_used: 14 },
    ...PLACES,
  }
  t.strictSame(buildCharge(ROW.team_id, account()), savingAllowances(new Map([[ROW.team_id, saved]])))
})

t.test('new teams start with a full bucket and no usage', async (t) => {
  t.strictSame(firstAllowance({ kind: 'free', send_rate_per_second: 3 }, new Date(NOW)), {
    period_start: '2026-02-01T00:00:00.000Z',
    period_end: '2026-03-01T00:00:00.000Z',
    ...{ emails_used: 0, whatsapp_used: 0, contacts_used: 0, storage_used: 0, bucket_tokens: 15 },
    refilled_at: NOW,
    ...{
      email_place: 0,
      email_batch_place: 0,
      broadcast_place: 0,
      whatsapp_place: 0,
      whatsapp_batch_place: 0,
      whatsapp_parts_place: 0,
      whatsapp_parts_batch_place: 0,
    },
  })
})
