/** The deadline of a request: it starts with the last byte of the body, and what ends later does no harm. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { number, object, string } from 'yup'
import { createApp } from '../../../api/app.ts'
import type { Answer } from '../../../api/http/errors.ts'
import { json } from '../../../api/http/input.ts'
import { type HttpDeps, type PublicRoute, publicRoutes, type Request } from '../../../api/http/route.ts'
import { caller, listen, startService } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const DEADLINE = 50

const publicRoute = publicRoutes<HttpDeps>()

const service = await startService(t)

const anyBody = json(object({ slow: number(), large: string() }))

type Handle = (request: Request<object>) => Promise<Answer>

/** Starts an application with only this route and the deadline above. */
const serve = (t: Test, handle: Handle, body: typeof anyBody | null = anyBody): Promise<string> => {
  const route = { method: 'POST', path: '/x', access: 'public', handle } as const
  const routes = [body ? publicRoute({ ...route, body }) : publicRoute(route as PublicRoute<HttpDeps>)]
  return listen(t, createApp(service.deps, routes, DEADLINE))
}

/** Waits for twice the deadline with its own kind of timer, so that a running deadline would have expired. */
const outlast = async (): Promise<void> => {
  for (let round = 0; round < 2; round++) await new Promise((resolve) => setTimeout(resolve, DEADLINE))
}

t.test('a body that arrives after the deadline is still handled', async (t) => {
  const base = await serve(t, async ({ body }) => ({ status: 200, body }))
  const headers = { 'Content-Type': 'application/json', 'Content-Length': 11 }
  const sent = request(`${base}/x`, { method: 'POST', headers })
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  sent.flushHeaders()
  await outlast()
  sent.write('{"slow"')
  await outlast()
  sent.end(':10}')
  const [response] = await answered
  t.equal(response.statusCode, 200)
  t.equal(Buffer.concat(await response.toArray()).toString(), '{"slow":10}')
})

t.test('a hanging handler returns 503, with and without a body', async (t) => {
  const hang = Promise.withResolvers<never>()
  for (const shape of [anyBody, null]) {
    const call = caller(await serve(t, () => hang.promise, shape))
    for (const body of [{}, { large: 'x'.repeat(2 ** 20) }]) {
      const { status, headers, body: answer } = await call('POST', '/x', { body })
      t.equal(`${status} ${answer.error?.code}`, '503 unavailable')
      t.equal(headers.get('retry-after'), '1')
    }
  }
})

t.test('a handler that ends after its 503 does no harm', async (t) => {
  for (const ending of ['an answer', 'a fault'] as const) {
    const gate = Promise.withResolvers<void>()
    let ended = false
    const call = caller(
      await serve(t, async () => {
        await gate.promise
        ended = true
        if (ending === 'a fault') throw new Error('too late')
        return { status: 201, body: { late: true } }
      }),
    )
    t.equal((await call('POST', '/x', { body: {} })).status, 503, ending)
    gate.resolve()
    await until('the handler has ended', () => ended)
    t.equal((await call('POST', '/x', { body: {} })).status, ending === 'a fault' ? 500 : 201, 'it serves on')
  }
})
