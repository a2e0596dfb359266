/**
 * Many values as rows of one statement: each column with its type, once. A statement with them has one text, however
 * many rows there are. Dates and JSON travel as text, bytes as they are.
 */
import { type FragmentSqlToken, type PrimitiveValueExpression, sql } from 'slonik'

function written(value: unknown, type: string): PrimitiveValueExpression {
  if (value === null || value === undefined) return null
  if (type === 'json' || type === 'jsonb') return JSON.stringify(value)
  return value instanceof Date ? value.toISOString() : (value as PrimitiveValueExpression)
}

type Types = Readonly<Record<string, string>>
type KeyOf<Item> = Item extends unknown ? keyof Item : never
/** Columns that no item has: none may be asked for. */
type Unknown<Item, Of> = { readonly [Column in Exclude<keyof Of, KeyOf<Item>>]: never }

/** A relation `name`, with a column for each of the types and a row for each item; what an item lacks is null. */
export function rowsOf<Item extends object, const Of extends Types>(
  name: string,
  types: Of & Unknown<Item, Of>,
  items: readonly Item[],
): FragmentSqlToken {
  const columns = Object.entries<string>(types)
  const tuples = (items as readonly Record<string, unknown>[]).map((item) =>
    columns.map(([column, type]) => written(item[column], type)),
  )
  const names = columns.map(([column]) => sql.identifier([column]))
  const rows = sql.unnest(
    tuples,
    columns.map(([, type]) => type),
  )
  return sql.fragment`${rows} as ${sql.identifier([name])} (${sql.join(names, sql.fragment`, `)})`
}
