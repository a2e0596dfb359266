/**
 * Bytes out of the database as they are, by `copy (select …) to stdout (format binary)` with one column, a bytea
 * that is never null.
 * Promises: none of them becomes text. Of any other query pg makes strings of all that it returns, hex of bytea; those
 * of large values outlive a collection of young objects, and V8 stops everything to collect the others.
 */
import pg from 'pg'

/** Whether a statement is such a copy; its rows are `{ bytes }`. */
export const isCopy = (text: string): boolean => /^\s*copy \(/.test(text)

/** What a binary copy begins with: its signature, flags, and the length of what would extend these. */
const HEADER = 19
const COLUMNS = 2
const LENGTH = 4

/** The value in a message, of which each has one row, the first one the header, too; null at the end. */
function valueIn(message: Buffer, isFirst: boolean): Buffer | null {
  const at = isFirst ? HEADER : 0
  if (message.readInt16BE(at) < 0) return null
  const from = at + COLUMNS + LENGTH
  // pg uses its buffer again.
  const value = Buffer.allocUnsafeSlow(message.readInt32BE(at + COLUMNS))
  message.copy(value, 0, from)
  return value
}

export function copyOut(client: pg.Client, text: string): Promise<Buffer[]> {
  const values: Buffer[] = []
  let isFirst = true
  return new Promise((resolve, reject) => {
    const query = new pg.Query(text, (error) => (error ? reject(error) : resolve(values)))
    const handleCopyData = ({ chunk }: { chunk: Buffer }): void => {
      const value = valueIn(chunk, isFirst)
      isFirst = false
      if (value !== null) values.push(value)
    }
    client.query(Object.assign(query, { handleCopyData }))
  })
}
