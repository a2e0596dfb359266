/**
 * The connection pool: slonik over pg. Every row is validated by the yup schema of its query. Timestamps are RFC 3339
 * strings in UTC. `isDatabaseUnavailable` recognizes every error of a lost database, including connections that no
 * longer respond.
 */
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  type CommonQueryMethods,
  ConnectionError,
  createPool,
  type DatabasePool,
  IdleTransactionTimeoutError,
  type Interceptor,
  StatementCancelledError,
  StatementTimeoutError,
  sql,
} from 'slonik'
import { type AnySchema, object } from 'yup'
import { causes } from '../errors.ts'
import { isSurelyValid } from '../validation/valid.ts'
import { NO_TLS } from './connect.ts'
import { createDriver, SILENT } from './driver.ts'

/** The pool: opens transactions, and runs single statements. */
export type Database = DatabasePool
/** Runs queries: a transaction, or the pool for a single statement. */
export type Tx = CommonQueryMethods
/** The caller's transaction and the time, for use cases. */
export type At = { tx: Tx; now: Date }

const validateRows: Interceptor = {
  name: 'validate rows',
  transformRow: ({ resultParser }, _query, row) => {
    const schema = resultParser as unknown as Partial<AnySchema>
    if (typeof schema?.validateSync === 'function' && !isSurelyValid(schema as AnySchema, row))
      schema.validateSync(row, { strict: true })
    return row
  },
}

/**
 * Opens a pool. Connects once to check the server. Later connections are created when needed, also after an outage.
 * @param statementTimeout in milliseconds. The server cancels a longer statement.
 * @param lockTimeout in milliseconds. The server cancels a longer wait for a lock. Without it, the statement timeout
 * applies.
 */
export async function openDatabase(
  url: string,
  {
    size = 10,
    statementTimeout = 10_000,
    lockTimeout = 0,
  }: { size?: number; statementTimeout?: number; lockTimeout?: number } = {},
): Promise<Database> {
  const limits = { statement: statementTimeout, lock: lockTimeout, idle: 30_000 }
  const pool = await createPool(url, {
    driverFactory: createDriver(url, limits),
    maxPoolSize: size,
    connectionTimeout: 3_000,
    // The retry helps if a pooler has no free connection, but one of ours has been released since then.
    connectionRetryLimit: 2,
    idleTimeout: 30_000,
    // We set nothing that outlives a transaction, so a released connection needs no DISCARD ALL (one round trip).
    resetConnection: async () => {},
    interceptors: [validateRows],
  })
  return { ...pool, transaction: thenAfterwards(keepingConnections(pool)) }
}

type Transaction = DatabasePool['transaction']

/** Keeps connections after a rollback. slonik would close a connection for each rejected request. */
const keepingConnections =
  ({ connect }: DatabasePool): Transaction =>
  async (work, retries) => {
    const outcome = await connect(async (connection) => {
      let thrown: unknown
      try {
        const value = await connection.transaction(
          (tx) =>
            work(tx).catch((error: unknown) => {
              thrown = error
              throw error
            }),
          retries,
        )
        return { value }
      } catch (error) {
        // An error that `work` did not throw is a failed COMMIT or ROLLBACK.
        if (error !== thrown || isDatabaseUnavailable(error)) throw error
        return { error }
      }
    })
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

const afterwards = new WeakMap<Tx, (() => void)[]>()

/** Runs the `onCommit` callbacks of a transaction after it has committed, and never otherwise. */
const thenAfterwards =
  (transaction: Transaction): Transaction =>
  async (work, retries) => {
    let waiting: (() => void)[] = []
    const result = await transaction((tx) => {
      waiting = []
      afterwards.set(tx, waiting)
      return work(tx)
    }, retries)
    for (const each of waiting) each()
    return result
  }

/** Runs a callback after the caller's transaction has committed, or immediately outside one. Not awaited. */
export function onCommit(tx: Tx, work: () => void): void {
  const waiting = afterwards.get(tx)
  if (waiting) waiting.push(work)
  else work()
}

/** PostgreSQL's disk_full. */
export const DISK_FULL = '53100'

const UNAVAILABLE_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', '08000', '08003', '08006'],
  '08P01', // from a pooler
  '25006', // read only: a standby, after a failover
  '25P03', // idle in a transaction for too long
  '40001', // could not serialize, though tried again
  '40P01', // deadlock, though tried again
  DISK_FULL,
  '53200', // out of memory
  '53300', // too many connections
  '53400', // configuration limit exceeded
  '55P03', // lock not available
  '57014', // cancelled by an operator
  '57P01', // admin shutdown
  '57P02', // crash shutdown
  '57P03', // cannot connect now
  '57P05', // idle for too long
  '58030', // I/O error
])

// pg's messages for a lost connection without a code.
const CODELESS = new Set([
  'timeout expired',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Query read timeout',
  SILENT,
])

const LOST = [
  ConnectionError,
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  IdleTransactionTimeoutError,
]
const CANCELLED = [StatementCancelledError, StatementTimeoutError]

/** True if an error or one of its causes has one of these classes or codes. */
const isAmong = (
  error: unknown,
  classes: readonly (new (...args: never[]) => Error)[],
  codes: ReadonlySet<unknown>,
) =>
  [...causes(error)].some((fault) => codes.has(fault.code) || classes.some((each) => fault instanceof each))

/**
 * True if connecting failed (route, name server, socket). A code isn't enough, because a missing file is also ENOENT.
 */
const isUnreached = (fault: Error): boolean =>
  'syscall' in fault && (fault.syscall === 'connect' || fault.syscall === 'getaddrinfo')

/** True if an error means that the database could not be reached or did not respond in time. */
export const isDatabaseUnavailable = (error: unknown): boolean =>
  isAmong(error, [...LOST, ...CANCELLED], UNAVAILABLE_CODES) ||
  [...causes(error)].some((fault) => CODELESS.has(fault.message) || isUnreached(fault))

/** True if a statement was cancelled because of its time limit, while the database is available. */
export const isTooSlow = (error: unknown): boolean => isAmong(error, CANCELLED, new Set(['57014']))

/** True if the server cancelled a statement that waited for a lock. Its transaction was rolled back. */
export const isLockTimeout = (error: unknown): boolean =>
  [...causes(error)].some(({ code }) => code === '55P03')

// Errors for an invalid user, password or database.
const REFUSED_CODES = new Set(['28000', '28P01', '3D000'])

/** Insufficient privilege. */
const NOT_ALLOWED = '42501'
/** The fix. Only the owner can use what `release` has created. */
const howToAllow = (message: string): string =>
  message.includes('pg_control_system')
    ? 'run `grant execute on function pg_control_system() to ROLE` as its owner'
    : 'use the role that runs the migrations (`release`), or a member of it'

/** Returns why a TLS handshake failed, if a setting can fix it. Null for any other error. */
function tlsRefusal({ code, message }: Error & { code?: unknown }): string | null {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `its certificate is for another name. Connect with that name, or use sslmode=verify-ca (${message})`
  if (message === NO_TLS) return "it doesn't support TLS. Use sslmode=disable if the network is safe"
  if (typeof code !== 'string' || !/CERT|^UNABLE_TO_|^INVALID_CA|^HOSTNAME_MISMATCH/.test(code)) return null
  const reason = message.split(';')[0]
  return `its certificate isn't trusted (${reason}). Set sslrootcert=FILE to the certificate of its authority, or use sslmode=require to encrypt without checking the certificate`
}

/**
 * Explains a mismatch between the server and DATABASE_URL, or a full disk, in one sentence for the operator. Null for
 * any other error.
 * @param place the server's address, if the reader may know it.
 */
export function databaseRejection(error: unknown, place = ''): string | null {
  for (const fault of causes(error)) {
    const { code, message } = fault
    const hint = message.includes('no encryption') ? '. Add ?sslmode=require' : ''
    if (typeof code === 'string' && REFUSED_CODES.has(code))
      return `the server${place} rejects DATABASE_URL: ${message}${hint}`
    if (code === NOT_ALLOWED)
      return `the server${place} denies a permission to the role of DATABASE_URL: ${message}. To fix this, ${howToAllow(message)}`
    if (code === DISK_FULL) return `the disk of the database${place} is full: ${message}. Free space on it`
    const tls = tlsRefusal(fault)
    if (tls !== null) return `the server${place} can't be used with DATABASE_URL: ${tls}`
  }
  return null
}

/** Sends one NOTIFY for each payload, in one statement. */
export async function notify(tx: Tx, channel: string, payloads: readonly string[]): Promise<void> {
  await tx.query(sql.prepared('notify', object())`
    select pg_notify(${channel}, payload) from unnest(${sql.array(payloads, 'text')}) payload`)
}

/** Limits each lock and statement of this transaction, in milliseconds, for work that is retried later. */
export async function limitWaits(tx: Tx, { lock, statement }: { lock: number; statement: number }) {
  await tx.query(sql.unsafe`
    select set_config('lock_timeout', ${String(lock)}, true), set_config('statement_timeout', ${String(statement)}, true)`)
}
