/** Combines the conditions of a query. An unset filter adds no condition, so that the planner never sees it. */
import { type FragmentSqlToken, sql } from 'slonik'

/** Joins conditions with AND. Anything that isn't a fragment, such as an unset filter, is left out. */
export function allOf(...conditions: (FragmentSqlToken | false | undefined)[]): FragmentSqlToken {
  const set = conditions.filter((condition) => typeof condition === 'object')
  return set.length === 0 ? sql.fragment`true` : sql.fragment`${sql.join(set, sql.fragment` and `)}`
}
