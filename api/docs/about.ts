/**
 * What the description says of a route beside what the route's shapes say: words, answers, refusals, examples.
 * The examples work: a test sends each of them.
 */
import type { Code } from '../../db/errors.ts'
import type { PublicRoute, TeamRoute } from '../http/route.ts'
import type { Component } from './components.ts'

export type Group = 'Emails' | 'WhatsApp' | 'Contacts' | 'Broadcasts' | 'Plans'

export type About = {
  /** The operation's name in generated clients. */
  id: string
  group: Group
  summary: string
  /** A paragraph each. */
  description?: readonly string[]
  /** What has to be said of a field, by its name: of the body, the query or the path. */
  notes?: Readonly<Record<string, string>>
  /** The name of its body's schema; of a batch: of an item. */
  takes?: string
  /** Whether the Idempotency-Key header is as good as the field of the body. */
  takesIdempotencyKey?: true
  /** Its placeholders are filled by shown.ts. */
  example?: Readonly<Record<string, unknown>>
  /** The file that a call of raw bytes sends as an example. */
  file?: { name: string; type: string; text: string }
  /** The answers that are no refusal; without a component the body is empty. */
  answers: Readonly<Record<number, { when: string; body?: Component }>>
  /** The refusals of its own; those that every route of its kind has are added. */
  refusals: readonly Code[]
  /** Whether its answers say how the team stands with its send rate. */
  rated?: boolean
}

/** Calls of a group, by their names in generated clients. */
export const describedAs = <N extends string>(
  group: Group,
  calls: Readonly<Record<N, Omit<About, 'id' | 'group'>>>,
): Readonly<Record<N, About>> => {
  const named = Object.entries<Omit<About, 'id' | 'group'>>(calls)
  return Object.fromEntries(named.map(([id, about]) => [id, { ...about, id, group }])) as Record<N, About>
}

/** A route that is described, whatever its handler works with. */
export type Described = Pick<
  PublicRoute<never> | TeamRoute<never>,
  'method' | 'path' | 'access' | 'body' | 'query' | 'raw'
> & { about: About }
