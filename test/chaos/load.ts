/**
 * Clients that repeat each send, with its own key, until its final response. A send only counts as accepted
 * after a 201 or 200. They use the API processes in turn.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { anEmail, type Reply, type TestTeam } from '../support/service.ts'
import type { World } from './world.ts'

export type Load = {
  /** The ids that clients were given, by the key of the send. */
  accepted: Map<string, string>
  /** Keys with contradictory responses, or with a permanent rejection. */
  wrong: string[]
}

let turn = 0

async function post(
  { apis }: World,
  { key }: TestTeam,
  path: string,
  body: unknown,
): Promise<Pick<Reply, 'status' | 'body'>> {
  const base = apis[turn++ % apis.length]?.base() ?? ''
  if (base === '') return { status: 0, body: null }
  try {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(35_000),
    })
    return { status: response.status, body: await response.json() }
  } catch {
    return { status: 0, body: null }
  }
}

/** Sends one email until its final response, or until the world is closed. */
export async function insist(
  world: World,
  team: TestTeam,
  idempotency_key: string,
  load: Load,
  changes: Record<string, unknown> = {},
): Promise<void> {
  while (!world.closed.aborted) {
    const { status, body } = await post(world, team, '/v1/emails', anEmail({ ...changes, idempotency_key }))
    if (status === 201 || status === 200) {
      const known = load.accepted.get(idempotency_key)
      if (known !== undefined && known !== body.id) load.wrong.push(idempotency_key)
      load.accepted.set(idempotency_key, body.id)
      return
    }
    if (status >= 400 && status < 500 && status !== 429) return void load.wrong.push(idempotency_key)
    await sleep(100)
  }
}

/** Sends a number of emails over a number of connections. `done` ends it early. */
export async function send(
  world: World,
  teams: readonly TestTeam[],
  count: number,
  { connections = 8, done = () => false }: { connections?: number; done?: () => boolean } = {},
): Promise<Load> {
  const load: Load = { accepted: new Map(), wrong: [] }
  let left = count
  const client = async (): Promise<void> => {
    while (left > 0 && !done()) {
      left -= 1
      const team = teams[left % teams.length]
      if (team) await insist(world, team, randomUUID(), load)
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
  return load
}

/** Sends many emails in batches of a hundred. */
export async function sendBatches(
  world: World,
  team: TestTeam,
  count: number,
  changes: Record<string, unknown> = {},
): Promise<Load> {
  const load: Load = { accepted: new Map(), wrong: [] }
  const one = async (size: number): Promise<void> => {
    const emails = Array.from({ length: size }, () => anEmail({ ...changes, idempotency_key: randomUUID() }))
    while (!world.closed.aborted) {
      const { status, body } = await post(world, team, '/v1/emails/batch', { emails })
      if (status === 200) {
        for (const { index, id } of body.data) {
          const key = String(emails[index]?.idempotency_key)
          if (id) load.accepted.set(key, id)
          else load.wrong.push(key)
        }
        return
      }
      await sleep(100)
    }
  }
  const sizes = Array.from({ length: Math.ceil(count / 100) }, (_, at) => Math.min(100, count - at * 100))
  const client = async (): Promise<void> => {
    for (let size = sizes.pop(); size !== undefined; size = sizes.pop()) await one(size)
  }
  await Promise.all([client(), client(), client(), client()])
  return load
}

/** Combines loads. */
export const together = (...loads: readonly Load[]): Load => ({
  accepted: new Map(loads.flatMap(({ accepted }) => [...accepted])),
  wrong: loads.flatMap(({ wrong }) => wrong),
})

/** Sends one POST, whatever its response. */
export const attempt = (world: World, team: TestTeam, body: Record<string, unknown>, path = '/v1/emails') =>
  post(world, team, path, body)
