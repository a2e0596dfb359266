/** Generates load over HTTP: at the maximum, one request after another, or at a given rate. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import autocannon from 'autocannon'
import { anEmail, type TestTeam } from '../support/service.ts'
import { percentile } from './figures.ts'

const html = (bytes: number): string => `<p>${'Hello there. '.repeat(Math.ceil(bytes / 13))}`.slice(0, bytes)

export const mail = (bytes: number) => anEmail({ html: html(bytes) })

/** Measures the 2xx responses per second of a path under load from the given number of connections. */
export async function flood(
  url: string,
  teams: readonly TestTeam[],
  body: unknown,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<number> {
  const text = JSON.stringify(body)
  const requests = teams.map(({ key }) => ({
    method: 'POST' as const,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: text,
  }))
  let clients = 0
  const result = await autocannon({
    url,
    connections,
    timeout: 120,
    duration: seconds,
    requests,
    // Each client starts with a different team.
    setupClient: (client) => {
      const at = (clients++ * 3) % requests.length
      client.setRequests([...requests.slice(at), ...requests.slice(0, at)])
    },
  })
  const { non2xx, errors, timeouts, statusCodeStats } = result
  if (non2xx + errors > 0)
    throw new Error(`requests failed: ${JSON.stringify({ errors, timeouts, ...statusCodeStats })}`)
  return result['2xx'] / result.duration
}

export type Client = { post(path: string, body: string, headers?: Record<string, string>): Promise<string> }

/** Creates a client with persistent connections. */
export function client(base: string, sockets = 64): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets })
  return {
    post: (path, body, headers = {}) =>
      new Promise((resolve, reject) => {
        const sent = request(base + path, { method: 'POST', agent, headers }, (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => {
            text += chunk
          })
          response.on('end', () => {
            if ((response.statusCode ?? 500) < 300) resolve(text)
            else reject(new Error(`${response.statusCode}: ${text.slice(0, 200)}`))
          })
        })
        sent.on('error', reject)
        sent.end(body)
      }),
  }
}

export const asTeam = ({ key }: TestTeam): Record<string, string> => ({
  Authorization: `Bearer ${key}`,
  'Content-Type': 'application/json',
})

/** Sends `count` emails one after another. @returns the milliseconds of each. */
export async function oneByOne(base: string, team: TestTeam, count: number): Promise<number[]> {
  const { post } = client(base, 1)
  const body = JSON.stringify(mail(2_048))
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const started = performance.now()
    await post('/v1/emails', body, asTeam(team))
    times.push(performance.now() - started)
  }
  return times
}

/** Returns the p99 in milliseconds while sends are offered at the given rate, whatever their results. */
export async function offered(
  base: string,
  teams: readonly TestTeam[],
  { rate, seconds }: { rate: number; seconds: number },
): Promise<number> {
  const { post } = client(base)
  const body = JSON.stringify(mail(2_048))
  const times: number[] = []
  const pending: Promise<void>[] = []
  const begun = performance.now()
  for (let index = 0; index < rate * seconds; index++) {
    const due = begun + (index * 1_000) / rate
    if (due > performance.now()) await sleep(due - performance.now())
    const team = teams[index % teams.length]
    if (!team) throw new Error('there must be a team')
    const started = performance.now()
    const done = post('/v1/emails', body, asTeam(team))
    pending.push(done.then(() => void times.push(performance.now() - started)))
  }
  await Promise.all(pending)
  return percentile(times, 0.99)
}

/** Posts emails in batches of 100, four calls at a time. */
export async function postBatches(base: string, team: TestTeam, count: number, bytes: number): Promise<void> {
  const { post } = client(base, 4)
  const body = JSON.stringify({ emails: Array.from({ length: 100 }, () => mail(bytes)) })
  let left = Math.ceil(count / 100)
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (left-- > 0) await post('/v1/emails/batch', body, asTeam(team))
    }),
  )
}
