/** The entry of the parser's thread (parser.ts): parses the bodies it is sent, by the route they were posted to. */
import { parentPort } from 'node:worker_threads'
import { Refusal } from '../db/errors.ts'
import { parseBody } from './input.ts'
import type { Question, Reply } from './parser.ts'
import { V1_ROUTES } from './v1/routes.ts'

const refused = ({ code, message }: Refusal) => ({ refused: { code, message } })

function answer({ id, method, path, bytes }: Question): Reply {
  const route = V1_ROUTES.find((each) => each.method === method && each.path === path)
  if (!route?.body) throw new Error(`${method} ${path} takes no body`)
  try {
    const body = parseBody(route.body, bytes)
    if (!Array.isArray(body)) return { id, body }
    return { id, items: body.map((item) => (item instanceof Refusal ? refused(item) : { item })) }
  } catch (error) {
    if (error instanceof Refusal) return { id, ...refused(error) }
    throw error
  }
}

parentPort?.on('message', (question: Question) => parentPort?.postMessage(answer(question)))
