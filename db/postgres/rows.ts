/**
 * Schemas of result rows (row), and rows from values (rowsOf), with one type per column. A statement with rowsOf has
 * the same text for any number of rows. Dates and JSON are sent as text, bytes unchanged. Column names are constants,
 * never customer data.
 */
import { type FragmentSqlToken, type PrimitiveValueExpression, sql } from 'slonik'
import { ArraySchema, number, type ObjectSchema, object, Schema, string } from 'yup'
import { encodeColumns } from './binary-arrays.ts'

type Value<T> = T extends (infer Item)[] ? Exclude<Item, undefined>[] : Exclude<T, undefined>
type Row<Of> = { [Column in keyof Of]: Of[Column] extends { __outputType: infer T } ? Value<T> : never }

const defined = (column: Schema): Schema =>
  column instanceof ArraySchema && column.innerType instanceof Schema
    ? column.of(column.innerType.defined()).defined()
    : column.defined()

/**
 * Creates the schema of a row with these columns. A value is never null unless its column is `nullable()`. The type
 * of `columns` is open, because with a contextual type `oneOf(['a', 'b'])` would be any string.
 */
export const row = <Of extends object>(columns: Of) =>
  object(
    Object.fromEntries(
      Object.entries(columns as Readonly<Record<string, Schema>>).map(([name, column]) => [
        name,
        defined(column),
      ]),
    ),
  ) as ObjectSchema<Row<Of>>

/** Results that many statements share. */
export const idRow = row({ id: string() })
export const refRow = row({ team_id: string(), id: string() })
export const countRow = row({ count: number() })
export const nameRow = row({ name: string() })
export const teamIdRow = row({ team_id: string() })

/** Joins columns to a list. @param table qualifies them, if necessary. */
export const columnsOf = (names: readonly string[], ...table: string[]): FragmentSqlToken => {
  const identifiers = names.map((name) => sql.identifier([...table, name]))
  return sql.fragment`${sql.join(identifiers, sql.fragment`, `)}`
}

function written(value: unknown, type: string): PrimitiveValueExpression {
  if (value === null || value === undefined) return null
  if (type === 'json' || type === 'jsonb') return JSON.stringify(value)
  return value instanceof Date ? value.toISOString() : (value as PrimitiveValueExpression)
}

type Types = Readonly<Record<string, string>>
type KeyOf<Item> = Item extends unknown ? keyof Item : never
/** Columns that no item has are rejected. */
type Unknown<Item, Of> = { readonly [Column in Exclude<keyof Of, KeyOf<Item>>]: never }

/** Creates a relation `name`, with a column for each type and a row for each item. Missing values are null. */
export function rowsOf<Item extends object, const Of extends Types>(
  name: string,
  types: Of & Unknown<Item, Of>,
  items: readonly Item[],
): FragmentSqlToken {
  const columns = Object.entries<string>(types)
  const records = items as readonly Record<string, unknown>[]
  const encoded = encodeColumns(columns, records)
  const values = columns.map(
    ([column, type], index) => encoded[index] ?? records.map((item) => written(item[column], type)),
  )
  // As from sql.unnest, which doesn't accept bytes.
  const arrays = columns.map(([, type], index) => `$slonik_${index + 1}::"${type}"[]`).join(', ')
  const names = columns.map(([column]) => `"${column}"`).join(', ')
  return { ...sql.fragment``, sql: `unnest(${arrays}) as "${name}" (${names})`, values }
}
