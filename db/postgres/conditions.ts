/**
 * Conditions of a query that are made of what was asked for, each only if it was: an unset part costs the planner
 * nothing.
 */
import { type FragmentSqlToken, sql } from 'slonik'

/** Whether a row fits each of these; what is no fragment, since its part of a filter is unset, is no condition. */
export function allOf(...conditions: (FragmentSqlToken | false | undefined)[]): FragmentSqlToken {
  const set = conditions.filter((condition) => typeof condition === 'object')
  return set.length === 0 ? sql.fragment`true` : sql.fragment`${sql.join(set, sql.fragment` and `)}`
}
