/** Describes a route in addition to its shapes: texts, responses, errors, examples. A test sends each example. */

import type { Code } from '../../db/errors.ts'
import { fromKeys, keysOf } from '../../db/validation/keys.ts'
import type { PublicRoute, TeamRoute } from '../http/route.ts'
import type { Component } from './components.ts'

export type Group = 'Emails' | 'WhatsApp' | 'Contacts' | 'Broadcasts' | 'Plans'

export type About = {
  /** The operation's name in generated clients. */
  id: string
  group: Group
  summary: string
  /** One string for each paragraph. */
  description?: readonly string[]
  /** Notes about fields of the body, the query or the path, by name. */
  notes?: Readonly<Record<string, string>>
  /** The name of the body's schema, or of an item's in a batch. */
  takes?: string
  /** True if it accepts the Idempotency-Key header. */
  takesIdempotencyKey?: true
  /** The body of an example call. shown.ts fills its placeholders. */
  example?: Readonly<Record<string, unknown>>
  /** The file that an example call with raw bytes sends. */
  file?: { name: string; type: string; text: string }
  /** The responses that aren't errors. Without a component the body is empty. */
  answers: Readonly<Record<number, { when: string; body?: Component }>>
  /** The errors of this route. Those of all routes of its kind are added. */
  refusals: readonly Code[]
  /** True if its responses have the RateLimit headers. Each 402 has them. */
  rated?: boolean
}

/** Describes the calls of a group, by their names in generated clients. */
export const describedAs = <N extends string>(
  group: Group,
  calls: Readonly<Record<N, Omit<About, 'id' | 'group'>>>,
): Readonly<Record<N, About>> => {
  return fromKeys(keysOf(calls), (id) => ({ ...calls[id], id, group }))
}

/** A described route, without the types of its handler. */
export type Described = Pick<
  PublicRoute<never> | TeamRoute<never>,
  'method' | 'path' | 'access' | 'body' | 'query' | 'raw'
> & { about: About }
