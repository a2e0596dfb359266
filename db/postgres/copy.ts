/**
 * Reads bytes with `copy (select …) to stdout (format binary)`, with one bytea column that is never null. For any
 * other query, pg creates hex strings, and V8 stops the process to collect large ones.
 */
import pg from 'pg'

/** True if a statement is such a copy. Its rows are `{ bytes }`. */
export const isCopy = (text: string): boolean => /^\s*copy \(/.test(text)

/** The length of the header of a binary copy: signature, flags and the length of the extension. */
const HEADER = 19
const COLUMNS = 2
const LENGTH = 4

/** Returns the value in a message. Each has one row, and the first one also the header. Null at the end. */
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
