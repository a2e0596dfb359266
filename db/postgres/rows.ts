/**
 * Rows as a statement returns them (row), and many values as rows of one statement (rowsOf): each column with its type,
 * once. A statement with rowsOf has one text, however many rows there are. Dates and JSON travel as text, bytes as they
 * are. Names, also those of a list of columns (columnsOf), are the code's own, never a customer's.
 */
import { type FragmentSqlToken, type PrimitiveValueExpression, sql } from 'slonik'
import { ArraySchema, number, type ObjectSchema, object, Schema, string } from 'yup'

type Value<T> = T extends (infer Item)[] ? Exclude<Item, undefined>[] : Exclude<T, undefined>
type Row<Of> = { [Column in keyof Of]: Of[Column] extends { __outputType: infer T } ? Value<T> : never }

const defined = (column: Schema): Schema =>
  column instanceof ArraySchema && column.innerType instanceof Schema
    ? column.of(column.innerType.defined()).defined()
    : column.defined()

/**
 * The schema of a row that has each of these columns. A value is never null unless its column says `nullable()`.
 * The type of `columns` is left open: with a context of its own, `oneOf(['a', 'b'])` would be any string.
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

/** What many statements return. */
export const idRow = row({ id: string() })
export const refRow = row({ team_id: string(), id: string() })
export const countRow = row({ count: number() })

/** Columns as a list, of one part. @param table what they are of, where that must be said. */
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
  const rows = sql.unnest(
    tuples,
    columns.map(([, type]) => type),
  )
  // The names as one part: as one for each they cost more than all the rest.
  const names = columns.map(([column]) => `"${column}"`).join(', ')
  return sql.fragment`${rows} ${{ ...sql.fragment``, sql: `as "${name}" (${names})` }}`
}
