/**
 * Row 23: the memory of an API process while large bodies arrive together, their results, and the latency of
 * another team's small sends. Each kind of body has a separate process.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { anEmail, type TestTeam } from '../support/service.ts'
import { atMost, type Figure, percentile, QUICK } from './figures.ts'
import { asTeam, client, mail } from './load.ts'
import type { Place, Rig } from './rig.ts'

const MIB = 1024 * 1024
const LARGE = 9 * MIB
const BODIES = QUICK ? 3 : 20

/** Makes a body of nearly `LARGE` bytes: as much of `unit` as fits between `head` and `tail`. */
const filled = (head: string, unit: string, tail: string): string =>
  head + unit.repeat(Math.floor((LARGE - head.length - tail.length) / unit.length)) + tail

const around = (emails: unknown): [string, string] => {
  const [head = '', tail = ''] = JSON.stringify(emails).split('FILL')
  return [head, tail]
}

/** Makes a contact with as many values as fit. */
const junkContact = (values: (at: number) => string): string => {
  const all: string[] = []
  for (let bytes = 60, at = 0; bytes < LARGE; at++) {
    const value = values(at)
    all.push(value)
    bytes += value.length + 1
  }
  return `{"email":"a@example.com","properties":[${all.slice(0, -1).join(',')}]}`
}

/** The bytes of a file as JSON.stringify writes a Buffer. */
const buffer = (): string =>
  JSON.stringify(
    anEmail({ attachments: [{ filename: 'a.bin', content: Buffer.alloc(LARGE / 4 - 1_000, 'z') }] }),
  )

/** Fills the remaining bytes. */
const DIGITS = '1'.repeat(50)

type Kind = { name: string; path: string; body: () => string; isHonest: boolean }

const junk = (name: string, value: (at: number) => string): Kind => ({
  name,
  path: '/v1/contacts',
  isHonest: false,
  body: () => junkContact(value),
})

const KINDS: readonly Kind[] = [
  {
    name: 'an email with a file of 6.7 MiB',
    path: '/v1/emails',
    isHonest: true,
    body: () => {
      const [head, tail] = around(anEmail({ attachments: [{ filename: 'a.txt', content: 'FILL' }] }))
      return filled(head, 'QUJD', tail)
    },
  },
  { name: 'an email with a Buffer', path: '/v1/emails', isHonest: true, body: buffer },
  {
    name: 'a hundred emails each',
    path: '/v1/emails/batch',
    isHonest: true,
    body: () => JSON.stringify({ emails: Array.from({ length: 100 }, () => mail(LARGE / 100 - 200)) }),
  },
  junk('[]', () => '[]'),
  junk('{}', () => '{}'),
  junk('strings', (at) => `"${at.toString(36)}"`),
  junk('the most keys', (at) => (at < 149_000 ? `{"${at.toString(36)}":1}` : DIGITS)),
  junk('the most numbers', (at) => (at < 2_900_000 ? '1' : DIGITS)),
]

/** Posts bodies at once. @returns the number of responses by status. */
async function postAll(base: string, { path, body }: Kind, teams: readonly TestTeam[]) {
  const text = body()
  const statuses = await Promise.all(
    Array.from({ length: BODIES }, async (_, at) => {
      const team = teams[at % teams.length]
      if (!team) throw new Error('there must be a team')
      const reply = await fetch(base + path, { method: 'POST', headers: asTeam(team), body: text }).catch(
        (error: Error) => ({
          status: (error.cause as { code?: string })?.code ?? error.message,
          text: async () => '',
        }),
      )
      await reply.text()
      return reply.status
    }),
  )
  const counts = Object.entries(Object.groupBy(statuses, String)).map(
    ([status, all = []]) => `${all.length} × ${status}`,
  )
  return counts.join(', ')
}

async function measureKind(place: Place, kind: Kind, teams: readonly TestTeam[], other: TestTeam) {
  const api = await place.api()
  const { post } = client(api.base, 16)
  const small = JSON.stringify(mail(2_048))
  const times: number[] = []
  const pending: Promise<void>[] = []
  const send = async () => {
    const began = performance.now()
    await post('/v1/emails', small, asTeam(other))
    times.push(performance.now() - began)
  }
  for (let each = 0; each < 50; each++) await send()
  times.length = 0
  let isOver = false
  const began = performance.now()
  const large = postAll(api.base, kind, teams).finally(() => {
    isOver = true
  })
  while (!isOver) {
    pending.push(send())
    await sleep(50)
  }
  const answered = await large
  const took = (performance.now() - began) / 1_000
  await Promise.all(pending)
  const memory = await api.peak()
  await api.stop()
  const owners = teams.length === 1 ? 'one team' : `${teams.length} teams`
  return atMost(1, {
    row: '23',
    measure: `memory of the API, ${BODIES} bodies of 9 MiB: ${kind.name}, ${owners}`,
    ...{ ours: memory, reference: 400, unit: 'MB' },
    note: `${answered} within ${took.toFixed(1)} s; small sends: p99 ${Math.round(percentile(times, 0.99))} ms`,
  })
}

/** Row 23. */
export async function measureBodies(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const [other, ...teams] = await place.teams(BODIES + 1)
  if (!other) throw new Error('there must be a team')
  const figures: Figure[] = []
  try {
    for (const kind of KINDS) {
      const owners = kind.isHonest ? [teams, teams.slice(0, 1)] : [teams]
      for (const each of owners) figures.push(await measureKind(place, kind, each, other))
    }
  } finally {
    await place.close()
  }
  return figures
}
