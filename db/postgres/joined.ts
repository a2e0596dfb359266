/**
 * Saves round trips of transactions: BEGIN is sent with the first statement, and COMMIT with a statement that is
 * named as the last one. Both parts end with one Sync. After an error the server skips the rest up to it, so that no
 * failed statement is committed.
 */
import pg from 'pg'

export type Statement = { text: string; values?: unknown[] | undefined; name?: string | undefined }

/** The prepared statements that others are joined with, by name. */
const BORDERS = { begin: 'START TRANSACTION', commit: 'COMMIT' } as const
type Border = keyof typeof BORDERS
export const { begin: BEGIN, commit: COMMIT } = BORDERS
const ROLLBACK = 'ROLLBACK'

const LAST = ' and commit'
/** Names a prepared statement that commits its transaction. The transaction can't have another one after it. */
export const lastOf = (name: string): string => `${name}${LAST}`
/** The same for a statement that isn't to be prepared. */
export const LAST_UNPREPARED = lastOf('')

/** Sends a statement with BEGIN before it or COMMIT after it, in one round trip. */
const sendJoined = (client: pg.Client, border: Border, statement: Statement): Promise<pg.QueryResult> =>
  new Promise((resolve, reject) => {
    const query = new pg.Query(
      { ...statement, queryMode: 'extended' } as pg.QueryConfig,
      (error, results) => {
        // After a value that can't be encoded, pg calls again, with a single empty result.
        const result: unknown = Array.isArray(results) ? results[border === 'begin' ? 1 : 0] : undefined
        if (error || !result) reject(error ?? new Error(`${BORDERS[border]} was not joined`))
        else resolve(result as pg.QueryResult)
      },
    )
    const { submit } = query
    query.submit = (connection) => {
      const sendBorder = () => {
        connection.bind({ statement: border }, true)
        connection.execute({}, true)
      }
      // Not before the Sync, which is also sent if a value can't be encoded.
      const execute: typeof connection.execute = (config, more) => {
        connection.execute(config, more)
        if (border === 'commit') sendBorder()
      }
      connection.stream.cork()
      if (border === 'begin') sendBorder()
      const fault = submit.call(query, Object.assign(Object.create(connection), { execute }))
      connection.stream.uncork()
      return fault
    }
    client.query(query)
  })

const NOTHING = { fields: [], rowCount: 0, rows: [] }

/**
 * Returns a function that runs the statements of one connection in sequence. @param send sends a statement by itself.
 */
export function joining<R>(
  client: pg.Client,
  { send, read }: { send: (statement: Statement) => Promise<R>; read: (result: pg.QueryResult) => R },
) {
  /** The prepared borders of this connection. */
  const prepared = new Set<Border>()
  let isBegin = false
  let committed = false
  const sendBorder = async (border: Border): Promise<R> => {
    const result = await send({ name: border, text: BORDERS[border] })
    prepared.add(border)
    return result
  }
  return async (statement: Statement): Promise<R> => {
    const { text, values = [] } = statement
    const isLast = statement.name?.endsWith(LAST) === true
    const name = statement.name === LAST_UNPREPARED ? undefined : statement.name
    const own = { text, values: statement.values, name }
    const isFirst = isBegin
    isBegin = text === BEGIN
    if (isBegin) committed = false
    if (committed) {
      committed = false
      if (text !== COMMIT) throw new Error(`the transaction has been committed before: ${text}`)
      return read({ ...NOTHING, command: COMMIT, oid: 0 })
    }
    if (isBegin || (isFirst && (text === COMMIT || text === ROLLBACK)))
      return read({ ...NOTHING, command: text, oid: 0 })
    if (isFirst) {
      // Only one statement can be prepared, and only a text without values can contain several.
      const isOne = name !== undefined || values.length > 0
      if (isOne && prepared.has('begin')) return read(await sendJoined(client, 'begin', own))
      await sendBorder('begin')
    }
    if (text === COMMIT) return await sendBorder('commit')
    if (!isLast || !prepared.has('commit')) return await send(own)
    const result = read(await sendJoined(client, 'commit', own))
    committed = true
    return result
  }
}
