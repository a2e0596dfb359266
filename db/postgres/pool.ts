/**
 * The connection pool: slonik over pg.
 * Promises: every row is validated by the yup schema its query names; timestamps are RFC 3339 strings in UTC;
 * `isDatabaseUnavailable` recognises every error that means a lost database, silently dead connections included.
 * Must not hold SQL of any table.
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

/** The whole pool: opens transactions, and runs single statements. */
export type Database = DatabasePool
/** What a named query runs on: a transaction, or the pool for a statement that stands alone. */
export type Tx = CommonQueryMethods
/** What a use case works at: the caller's transaction, and the time. */
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
 * Opens a pool. Connects once, to learn what it speaks to; later connections are made when they are needed, and a
 * database that goes away and comes back is found again.
 * @param statementTimeout in milliseconds; a statement past it is cancelled by the server.
 * @param lockTimeout in milliseconds; so is one that waits for a lock for longer. Without it a wait is a statement's.
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
    // Tries: where a pooler gives no more connections, the second takes one of our own that has come free meanwhile.
    connectionRetryLimit: 2,
    idleTimeout: 30_000,
    // We set nothing that outlives a transaction, so a released connection needs no DISCARD ALL (one round trip).
    resetConnection: async () => {},
    interceptors: [validateRows],
  })
  return { ...pool, transaction: thenAfterwards(keepingConnections(pool)) }
}

type Transaction = DatabasePool['transaction']

/**
 * The pool's transactions: one that `work` has thrown out of is rolled back, and its connection is as good as before.
 * slonik would close it, so that each request that is refused cost the next one a connection.
 */
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
        // What `work` did not throw is a COMMIT or ROLLBACK that failed.
        if (error !== thrown || isDatabaseUnavailable(error)) throw error
        return { error }
      }
    })
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }

/** What is to be done once a transaction has committed. */
const afterwards = new WeakMap<Tx, (() => void)[]>()

/** The pool's transactions: what `onCommit` was given is done once they have committed, and never without. */
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

/** Does something once the caller's transaction has committed; at once where a statement stands alone. Not awaited. */
export function onCommit(tx: Tx, work: () => void): void {
  const waiting = afterwards.get(tx)
  if (waiting) waiting.push(work)
  else work()
}

/** The code of a write for which the disk has no space. */
export const DISK_FULL = '53100'

const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  '08000',
  '08003',
  '08006',
  '08P01', // what a pooler says of itself
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

// What pg says of a lost connection without giving it a code.
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

/** Whether an error or one of its causes is of one of these classes, or has one of these codes. */
const isAmong = (
  error: unknown,
  classes: readonly (new (...args: never[]) => Error)[],
  codes: ReadonlySet<unknown>,
) =>
  [...causes(error)].some((fault) => codes.has(fault.code) || classes.some((each) => fault instanceof each))

/**
 * Whether a connection could not be made, whatever the system calls it: no route, no name server, no socket where the
 * server would have it (a file that is missing is ENOENT too, so that the code alone says nothing).
 */
const isUnreached = (fault: NodeJS.ErrnoException): boolean =>
  fault.syscall === 'connect' || fault.syscall === 'getaddrinfo'

/** Whether an error means that the database could not be reached or did not answer in time. */
export const isDatabaseUnavailable = (error: unknown): boolean =>
  isAmong(error, [...LOST, ...CANCELLED], UNAVAILABLE_CODES) ||
  [...causes(error)].some(
    (fault) => CODELESS.has(fault.message) || isUnreached(fault as NodeJS.ErrnoException),
  )

/** Whether a statement was cancelled because it took too long, while the database is otherwise well. */
export const isTooSlow = (error: unknown): boolean => isAmong(error, CANCELLED, new Set(['57014']))

/** Whether the server cancelled a statement that waited for somebody else's lock: its transaction left nothing. */
export const isLockTimeout = (error: unknown): boolean =>
  [...causes(error)].some(({ code }) => code === '55P03')

// What a server answers to a user, a password or a database that it does not take.
const REFUSED_CODES = new Set(['28000', '28P01', '3D000'])

/** What it answers to a statement that its role may not make. */
const NOT_ALLOWED = '42501'
/** What to do about it. Of what `release` has made nobody can use but who owns it. */
const howToAllow = (message: string): string =>
  message.includes('pg_control_system')
    ? 'let its owner grant it, such as by `grant execute on function pg_control_system() to ROLE`'
    : 'the role must be the one that `release` runs as, or a member of it'

/** Why a TLS handshake failed, where a setting can fix it; null for any other error. */
function tlsRefusal({ code, message }: Error & { code?: unknown }): string | null {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `its certificate is for another name: connect by that name, or use sslmode=verify-ca (${message})`
  if (message === NO_TLS) return "it doesn't support TLS. Use sslmode=disable if the network is safe"
  if (typeof code !== 'string' || !/CERT|^UNABLE_TO_|^INVALID_CA|^HOSTNAME_MISMATCH/.test(code)) return null
  const reason = message.split(';')[0]
  return `its certificate is not trusted (${reason}): name its authority with sslrootcert=FILE, or use sslmode=require to encrypt without a check`
}

/**
 * Returns what the operator has to fix about the server, DATABASE_URL or the disk, in one sentence. Null for any other
 * error.
 * @param place where the server is, where the reader may know.
 */
export function databaseRefusal(error: unknown, place = ''): string | null {
  for (const fault of causes(error)) {
    const { code, message } = fault
    const hint = message.includes('no encryption') ? '; add ?sslmode=require' : ''
    if (typeof code === 'string' && REFUSED_CODES.has(code))
      return `the server${place} rejects DATABASE_URL: ${message}${hint}`
    if (code === NOT_ALLOWED)
      return `the server${place} denies a permission to the role of DATABASE_URL: ${message}; ${howToAllow(message)}`
    if (code === DISK_FULL) return `the disk of the database${place} is full: ${message}; free space on it`
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

/**
 * Bounds each lock and each statement of this transaction, in milliseconds: for work that is done again rather than
 * waited for.
 */
export async function limitWaits(tx: Tx, { lock, statement }: { lock: number; statement: number }) {
  await tx.query(sql.unsafe`
    select set_config('lock_timeout', ${String(lock)}, true), set_config('statement_timeout', ${String(statement)}, true)`)
}
