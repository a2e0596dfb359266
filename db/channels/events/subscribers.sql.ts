/**
 * Who is handed what has just become true. To add a consumer: a value in CONSUMERS.
 * Promises: a team that nobody listens to costs no statement, since the statement that stores what happened says which
 * teams are listened to. Must not know an aggregate's tables.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Tx } from '../../postgres/pool.ts'
import type { Happening } from './domain-event.ts'
import { hasEndpoint } from './webhooks.sql.ts'
import { notifyEndpoints } from './webhooks.ts'

type Consumer = {
  name: string
  /** Whether it listens to a team, as a condition. @param team the team's id, as a column. */
  listensTo: (team: FragmentSqlToken) => FragmentSqlToken
  /** Runs in the transaction that made it true, for the teams that it listens to and perhaps others. */
  take(tx: Tx, happenings: readonly Happening[]): Promise<void>
}

export const CONSUMERS: readonly Consumer[] = [
  { name: 'webhooks', listensTo: hasEndpoint, take: notifyEndpoints },
]

/** Whether anybody listens to a team, as a column of the statement that stores what happened. */
export const hasListeners = (team: FragmentSqlToken): FragmentSqlToken =>
  sql.fragment`(${sql.join(
    CONSUMERS.map(({ listensTo }) => listensTo(team)),
    sql.fragment` or `,
  )})`
