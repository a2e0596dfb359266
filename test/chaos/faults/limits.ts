/** Races for one key, one quota, one bucket, one contact: reliability B1, B2, B3, B7. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { anEmail, type TestTeam } from '../../support/service.ts'
import { contradictions, settle } from '../account.ts'
import type { Fault, Outcome } from '../fault.ts'
import { attempt, type Load } from '../load.ts'
import { type World, within } from '../world.ts'

/** What is counted where nothing has to be recovered from. */
const counted = (accepted: number, over: number): Outcome => ({
  accepted,
  lost: 0,
  repeated: 0,
  after_answer: 0,
  over,
  recovered: 0,
})

const many = <T>(count: number, one: (nth: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, nth) => one(nth)))

/** How many emails a team has. */
async function stored({ sql }: World, { id }: TestTeam): Promise<number> {
  const [row] = await sql<{ count: string }>('select count(*) as count from emails where team_id = $1', [id])
  return Number(row?.count)
}

export const limitFaults: readonly Fault[] = [
  {
    id: 'B1',
    words: 'the same key by 100 clients at once, singles and batches, two APIs',
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
        const told = new Set(ids.filter((id) => id !== undefined))
        if (told.size !== 1) load.wrong.push(idempotency_key)
        load.accepted.set(idempotency_key, [...told][0])
      }
      const account = await settle(world, load, { ended: performance.now() })
      return { ...account, over: account.over + (await stored(world, team)) - load.accepted.size, limit: 30 }
    },
  },
  {
    id: 'B2',
    words: 'a quota of 100, wanted by 300 singles and 30 batches of 7',
    load: '330 calls at once',
    async run(world) {
      const team = await world.team({ email_limit: 100 })
      await many(330, (nth) =>
        nth % 11 === 0
          ? attempt(world, team, { emails: [1, 2, 3, 4, 5, 6, 7].map(() => anEmail()) }, '/v1/emails/batch')
          : attempt(world, team, anEmail()),
      )
      const count = await stored(world, team)
      return counted(count, Math.max(0, count - 100) + (await contradictions(world)))
    },
  },
  {
    id: 'B3',
    words: 'a rate of 10/s with bursts of 50, wanted without a pause for 4 s',
    load: '20 clients',
    async run(world) {
      const team = await world.team({ rate: 10 })
      const started = performance.now()
      const end = started + 4_000
      await many(20, async () => {
        while (performance.now() < end) await attempt(world, team, anEmail())
      })
      const seconds = (performance.now() - started) / 1_000
      const count = await stored(world, team)
      return {
        ...counted(count, Math.max(0, count - Math.floor(50 + 10 * seconds))),
        note: `${seconds.toFixed(1)} s`,
      }
    },
  },
  {
    id: 'B7',
    words: '20 bulk calls of 500 overlapping contacts at once, allowance 600',
    load: '10,000 items',
    async run(world) {
      const team = await world.team({ contact_limit: 600 })
      const emails = Array.from({ length: 800 }, (_, nth) => `person${nth}@example.org`)
      const answers = await many(20, async (nth) => {
        const mixed = emails.toSorted((one, other) => hash(one, nth) - hash(other, nth)).slice(0, 500)
        const body = { contacts: mixed.map((email) => ({ email })) }
        for (;;) {
          const answer = await attempt(world, team, body, '/v1/contacts/bulk')
          if (answer.status === 200) return answer
          await sleep(200)
        }
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

/** Some order that differs with each call. */
const hash = (text: string, seed: number): number =>
  [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0) * (seed + 7)) % 10_007, seed)
