/**
 * The connection pool: slonik over pg.
 * Promises: every row is validated by the yup schema its query names; timestamps are RFC 3339 strings in UTC;
 * a lost database is a `DatabaseUnavailable` whoever asks. Must not hold SQL of any table.
 */
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  type CommonQueryMethods,
  ConnectionError,
  createPool,
  type DatabasePool,
  type Interceptor,
  StatementTimeoutError,
  sql,
} from 'slonik'
import type { Schema } from 'yup'

/** The whole pool: opens transactions, and runs single statements. */
export type Database = DatabasePool
/** What a named query runs on: a transaction, or the pool for a statement that stands alone. */
export type Tx = CommonQueryMethods

const validateRows: Interceptor = {
  name: 'validate rows',
  transformRow: ({ resultParser }, _query, row) => {
    const schema = resultParser as unknown as Partial<Schema>
    if (typeof schema?.validateSync === 'function') schema.validateSync(row, { strict: true })
    return row
  },
}

const typeParsers = [
  { name: 'timestamptz', parse: (value: string) => new Date(value).toISOString() },
  { name: 'int8', parse: Number },
  { name: 'numeric', parse: Number },
]

/**
 * Opens a pool. Connects once, to learn the types' numbers; later connections are made when they are needed, and a
 * database that goes away and comes back is found again.
 * @param statementTimeout in milliseconds; a statement past it is cancelled by the server.
 */
export async function openDatabase(
  url: string,
  { size = 10, statementTimeout = 10_000 }: { size?: number; statementTimeout?: number } = {},
): Promise<Database> {
  return await createPool(url, {
    maxPoolSize: size,
    connectionTimeout: 3_000,
    connectionRetryLimit: 1,
    idleTimeout: 30_000,
    statementTimeout,
    idleInTransactionSessionTimeout: 30_000,
    // We set nothing that outlives a transaction, so a released connection needs no DISCARD ALL (one round trip).
    resetConnection: async () => {},
    interceptors: [validateRows],
    typeParsers,
  })
}

const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  '08000',
  '08003',
  '08006',
  '53300', // too many connections
  '55P03', // lock not available
  '57P01', // admin shutdown
  '57P02', // crash shutdown
  '57P03', // cannot connect now
])

// What pg says of a lost connection without giving it a code.
const CODELESS = new Set([
  'timeout expired',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
])

/** Whether an error means that the database could not be reached or did not answer in time. */
export function isDatabaseUnavailable(error: unknown): boolean {
  for (let fault: unknown = error; fault instanceof Error; fault = fault.cause) {
    if (
      fault instanceof ConnectionError ||
      fault instanceof BackendTerminatedError ||
      fault instanceof BackendTerminatedUnexpectedlyError ||
      fault instanceof StatementTimeoutError
    ) {
      return true
    }
    const { code } = fault as { code?: unknown }
    if (typeof code === 'string' && UNAVAILABLE_CODES.has(code)) return true
    if (CODELESS.has(fault.message)) return true
  }
  return false
}

// What a server answers to a user, a password or a database that it does not take.
const REFUSED_CODES = new Set(['28000', '28P01', '3D000'])

/** The server's words when it does not let us in: whoever set DATABASE_URL has to act. Null for any other error. */
export function databaseRefusal(error: unknown): string | null {
  for (let fault: unknown = error; fault instanceof Error; fault = fault.cause) {
    const { code, message } = fault as Error & { code?: unknown }
    if (typeof code === 'string' && REFUSED_CODES.has(code)) return message
  }
  return null
}

/** Sends one NOTIFY for each payload, in one statement. */
export async function notify(tx: Tx, channel: string, payloads: readonly string[]): Promise<void> {
  await tx.query(
    sql.unsafe`select pg_notify(${channel}, payload) from unnest(${sql.array(payloads, 'text')}) payload`,
  )
}

/** Fails when the database does not answer. */
export async function ping(tx: Tx): Promise<void> {
  await tx.query(sql.unsafe`select 1`)
}
