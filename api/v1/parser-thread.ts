/** The thread of http/parser.ts. It parses forms, and the JSON of a route. */
import { serialize } from 'node:v8'
import { move, transferableSymbol, valueSymbol } from 'piscina'
import { errorData, RequestError } from '../../db/errors.ts'
import { readForm } from '../http/forms.ts'
import { parseBody } from '../http/input.ts'
import type { Question, Reply } from '../http/parser.ts'
import { BODIES } from './bodies.ts'

/** Transfers the memory of a reply instead of copying it. */
const moving = (reply: Reply, { buffer }: Uint8Array<ArrayBuffer>): Reply =>
  move({ [transferableSymbol]: [buffer], [valueSymbol]: reply }) as unknown as Reply

const packed = (value: unknown): Reply => {
  const body = serialize(value) as Uint8Array<ArrayBuffer>
  return moving({ body }, body)
}

/** Serializes the items into one buffer, because a hundred buffers are slower to transfer. */
function batch(body: readonly unknown[]): Reply {
  const parts: Uint8Array[] = []
  const items = body.map((item) => {
    if (item instanceof RequestError) return { refused: errorData(item) }
    const part = serialize(item)
    parts.push(part)
    return { bytes: part.length }
  })
  const together = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    together.set(part, at)
    at += part.length
  }
  return moving({ items, packed: together }, together)
}

/** Parses a body. @throws only internal errors, none that a client can cause */
export default async function answer(question: Question): Promise<Reply> {
  try {
    if ('form' in question) return packed(await readForm(question.form, question.bytes))
    const { method, path, bytes } = question
    const shape = BODIES[`${method} ${path}`]
    if (!shape) throw new Error(`${method} ${path} has no body`)
    const body = parseBody(shape, bytes)
    return Array.isArray(body) ? batch(body) : packed(body)
  } catch (error) {
    if (error instanceof RequestError) return { refused: errorData(error) }
    throw error
  } finally {
    // Doesn't wait for the garbage collector, which never runs in a thread that only counts and rejects.
    question.bytes.buffer.transfer(0)
  }
}
