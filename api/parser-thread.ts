/** The entry of the parser's thread (parser.ts): parses the bodies it is sent, by the route they were posted to. */
import { serialize } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { Refusal } from '../db/errors.ts'
import { parseBody } from './input.ts'
import type { Question, Reply } from './parser.ts'
import { V1_ROUTES } from './v1/routes.ts'

const refused = ({ code, message }: Refusal) => ({ refused: { code, message } })

const packed = (value: unknown) => new Uint8Array(serialize(value))

function answer({ id, method, path, bytes }: Question): Reply {
  const route = V1_ROUTES.find((each) => each.method === method && each.path === path)
  if (!route?.body) throw new Error(`${method} ${path} takes no body`)
  try {
    const body = parseBody(route.body, bytes)
    if (!Array.isArray(body)) return { id, body: packed(body) }
    return {
      id,
      items: body.map((item) => (item instanceof Refusal ? refused(item) : { item: packed(item) })),
    }
  } catch (error) {
    if (error instanceof Refusal) return { id, ...refused(error) }
    throw error
  }
}

/** What is handed over as it is, instead of being copied. */
function transfers(reply: Reply): ArrayBuffer[] {
  if ('body' in reply) return [reply.body.buffer]
  if ('items' in reply) return reply.items.flatMap((each) => ('item' in each ? [each.item.buffer] : []))
  return []
}

parentPort?.on('message', (question: Question) => {
  const reply = answer(question)
  parentPort?.postMessage(reply, transfers(reply))
})
