/** Concurrent calls with one idempotency key, quota, bucket or contact. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { matchingEmails } from '../../../db/messages/emails/bulk.ts'
import { removeEmails } from '../../../db/messages/emails/remove.ts'
import { seenNow } from '../../../db/postgres/snapshot.sql.ts'
import { firstIdAt } from '../../../db/validation/ids.ts'
import { anEmail } from '../../support/service.ts'
import { contradictions, counted, emailsOf, settle } from '../account.ts'
import { type Fault, inTurn, meanwhile } from '../fault.ts'
import { attempt, type Load } from '../load.ts'
import { slowCommits } from '../slow-commits.ts'
import { within } from '../world.ts'

const many = <T>(count: number, one: (nth: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, nth) => one(nth)))

export const limitFaults: readonly Fault[] = [
  {
    id: 'B1',
    words: 'the same idempotency key by 100 clients at once, singles and batches',
    load: '10 rounds',
    async run(world, scale) {
      const team = await world.team()
      const load: Load = { accepted: new Map(), wrong: [] }
      for (let round = 0; round < 10 * scale; round++) {
        const idempotency_key = randomUUID()
        const email = anEmail({ idempotency_key })
        const ids = await many(100, async (nth) => {
          if (nth % 10 > 0) return (await attempt(world, team, email)).body?.id
          const { body } = await attempt(world, team, { emails: [email, email] }, '/v1/emails/batch')
          return body?.data?.[1]?.id
        })
        const answers = new Set(ids.filter((id) => id !== undefined))
        if (answers.size !== 1) load.wrong.push(idempotency_key)
        load.accepted.set(idempotency_key, [...answers][0])
      }
      const account = await settle(world, load)
      return {
        ...account,
        over: account.over + (await emailsOf(world, team)) - load.accepted.size,
        limit: 30,
      }
    },
  },
  {
    id: 'B2',
    words: '300 singles and 30 batches of 7 at a quota of 100',
    load: '330 calls at once',
    async run(world) {
      const team = await world.team({ email_limit: 100 })
      await many(330, (nth) =>
        nth % 11 === 0
          ? attempt(world, team, { emails: [1, 2, 3, 4, 5, 6, 7].map(() => anEmail()) }, '/v1/emails/batch')
          : attempt(world, team, anEmail()),
      )
      const count = await emailsOf(world, team)
      return counted(count, Math.max(0, count - 100) + (await contradictions(world)))
    },
  },
  {
    id: 'B3',
    words: 'more emails than a rate limit of 10/s with bursts of 50 allows',
    load: '20 clients',
    async run(world) {
      const team = await world.team({ rate: 10 })
      const started = performance.now()
      const end = started + 4_000
      await many(20, async () => {
        while (performance.now() < end) await attempt(world, team, anEmail())
      })
      const seconds = (performance.now() - started) / 1_000
      const count = await emailsOf(world, team)
      return counted(count, Math.max(0, count - Math.floor(50 + 10 * seconds)), `${seconds.toFixed(1)} s`)
    },
  },
  {
    id: 'B4',
    words:
      'requests rejected for different errors, commits of 0.2 s, kill -9 of an API process every 0.7 s: none is charged',
    load: '16 clients for 8 s, then a burst of 50',
    async run(world) {
      const team = await world.team({ rate: 10, email_limit: 60 })
      const refused: Record<string, unknown>[] = [
        { subject: 5 },
        { from: 'nobody' },
        { headers: { 'Message-ID': 'x' } },
        { reply_to: 'nobody' },
        { from: 'hello@example.test' },
        { template_id: randomUUID() },
      ]
      const full = await world.team({ email_limit: 0 })
      const repair = await slowCommits(world, 0.2)
      const begun = performance.now()
      const work = many(16, async (nth) => {
        while (performance.now() < begun + 8_000) {
          await attempt(world, team, anEmail(inTurn(refused, nth)))
          await attempt(world, full, anEmail())
        }
      })
      await meanwhile(work, 700, (nth) => {
        if (world.apis.every((api) => api.isUp())) inTurn(world.apis, nth).signal('SIGKILL')
      })
      await repair()
      await within(30, () => world.apis.every((api) => api.isUp()))
      const costs = (await emailsOf(world, team)) + (await emailsOf(world, full))
      // The failed calls must have used neither quota nor tokens.
      const answers = await many(50, () => attempt(world, team, anEmail()))
      const wrong = answers.filter(({ status }) => status !== 201).length
      return counted(await emailsOf(world, team), costs + wrong + (await contradictions(world)))
    },
  },
  {
    id: 'B5',
    words: 'emails deleted while others are sent, at a full quota',
    load: 'quota 30, 8 clients for 10 s',
    async run(world) {
      const team = await world.team({ email_limit: 30 })
      const begun = performance.now()
      let [accepted, most] = [0, 0]
      const work = many(8, async () => {
        while (performance.now() < begun + 10_000) {
          const { status } = await attempt(world, team, anEmail())
          if (status === 201) accepted += 1
        }
      })
      let deleted = 0
      await meanwhile(work, 100, async () => {
        most = Math.max(most, await emailsOf(world, team))
        const between = { newest: 'ffffffff-ffff-ffff-ffff-ffffffffffff', oldest: firstIdAt(new Date(0)) }
        const seen = await seenNow(world.database)
        const wanted = { filter: { status: 'sent' as const }, between, most: 5, seen }
        deleted += await world.database.transaction(async (tx) => {
          const { ids } = await matchingEmails(tx, team.id, wanted, { before: undefined, done: 0 })
          return ids.length === 0 ? 0 : removeEmails({ tx }, team.id, ids)
        })
      })
      const count = await emailsOf(world, team)
      const over =
        Math.max(0, most - 30) + Math.abs(accepted - deleted - count) + (await contradictions(world))
      return counted(accepted, over, `${deleted} deleted, at most ${most} stored`)
    },
  },
  {
    id: 'B7',
    words: '20 bulk calls of 500 contacts at once, with overlaps, at a quota of 600',
    load: '10,000 items',
    async run(world) {
      const team = await world.team({ contact_limit: 600 })
      const emails = Array.from({ length: 800 }, (_, nth) => `person${nth}@example.org`)
      const answers = await many(20, async (nth) => {
        const mixed = emails.toSorted((one, other) => hash(one, nth) - hash(other, nth)).slice(0, 500)
        const body = { contacts: mixed.map((email) => ({ email })) }
        while (!world.closed.aborted) {
          const answer = await attempt(world, team, body, '/v1/contacts/bulk')
          if (answer.status === 200) return answer
          await sleep(200)
        }
        throw world.closed.reason
      })
      const count = async () =>
        Number(
          (
            await world.sql<{ n: string }>('select count(*) as n from contacts where team_id = $1', [team.id])
          )[0]?.n,
        )
      await within(10, async () => (await count()) === 600)
      const wrong = answers.filter(({ body }) => body.data.length !== 500).length
      return counted(await count(), Math.abs((await count()) - 600) + wrong)
    },
  },
]

/** Orders texts differently for each seed. */
const hash = (text: string, seed: number): number =>
  [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0) * (seed + 7)) % 10_007, seed)
