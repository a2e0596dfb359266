/**
 * The driver of slonik: pg, connected by `connect.ts`. int8 and numeric are numbers, timestamps RFC 3339 strings in
 * UTC. The limits apply to every statement, or behind a pooler to every transaction. Behind a pooler, no session
 * state is used (no startup parameters, no prepared statements) except for the settings that poolers keep.
 */

import pg from 'pg'
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  createDriverFactory,
  type DriverFactory,
} from 'slonik'
import { codeOf } from '../errors.ts'
import { readDatabaseUrl } from './address.ts'
import { isPooled, setSession, wayTo } from './connect.ts'
import { BEGIN, joining, type Statement } from './joined.ts'

/** In milliseconds. 0: none. `idle`: how long a transaction can be idle. */
type Limits = { statement: number; lock: number; idle: number }

/** How long to wait for the server after a statement's own limit, in milliseconds. */
const SILENCE_MS = 3_000
export const SILENT = 'the connection no longer responds'

type Parser = (value: string) => unknown

const rfc3339: Parser = (value) => new Date(value).toISOString()
const { BYTEA, INT8, NUMERIC, TIMESTAMPTZ } = pg.types.builtins
/** By type OID. Those of PostgreSQL's built-in types never differ. */
const PARSERS = new Map<number, Parser>([
  [INT8, Number],
  [NUMERIC, Number],
  [TIMESTAMPTZ, rfc3339],
])
const TEXT_ARRAY = 1009
/** Array types: int8[], numeric[], timestamptz[]. */
const ARRAYS = new Map<number, Parser>([
  [1016, Number],
  [1231, Number],
  [1185, rfc3339],
])

function findParser(type: number): Parser {
  const parser = PARSERS.get(type)
  if (parser) return parser
  const item = ARRAYS.get(type)
  if (!item) return pg.types.getTypeParser(type) as Parser
  const texts = pg.types.getTypeParser(TEXT_ARRAY as number) as unknown as (text: string) => (string | null)[]
  return (text) => texts(text).map((value) => (value === null ? null : item(value)))
}

const types = { getTypeParser: findParser } as unknown as pg.CustomTypesConfig

/** Converts errors of a lost connection to slonik's own, so that it drops the connection. */
function toldToSlonik(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (/connection terminated unexpectedly/i.test(error.message))
    return new BackendTerminatedUnexpectedlyError(error)
  if (codeOf(error) === '57P01' || /connection terminated/i.test(error.message))
    return new BackendTerminatedError(error)
  return error
}

/** Waits for a response up to `limit`, because the kernel would wait for 15 minutes. */
async function answered<T>(answer: Promise<T>, limit: number, giveUp: (fault: Error) => void): Promise<T> {
  const silent = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const fault = new Error(SILENT)
    silent.reject(fault)
    giveUp(fault)
  }, limit)
  try {
    return await Promise.race([answer, silent.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Starts a transaction behind a pooler, with its limits in the same round trip. */
const beginWithin = ({ statement, lock, idle }: Limits): string =>
  `${BEGIN}; set local statement_timeout = ${statement}; set local lock_timeout = ${lock};
   set local idle_in_transaction_session_timeout = ${idle}`

/**
 * True for `copy (select …) to stdout (format binary)`, with one bytea column that is never null. Its rows are
 * `{ bytes }`. For any other query, pg creates hex strings, and V8 stops the process to collect large ones.
 */
const isCopy = (text: string): boolean => /^\s*copy \(/.test(text)

/** The length of the header of a binary copy: signature, flags and the length of the extension. */
const COPY_HEADER = 19
const COLUMNS = 2
const LENGTH = 4

/** Returns the value in a message. Each has one row, and the first one also the header. Null at the end. */
function valueIn(message: Buffer, isFirst: boolean): Buffer | null {
  const at = isFirst ? COPY_HEADER : 0
  if (message.readInt16BE(at) < 0) return null
  const from = at + COLUMNS + LENGTH
  // pg uses its buffer again.
  const value = Buffer.allocUnsafeSlow(message.readInt32BE(at + COLUMNS))
  message.copy(value, 0, from)
  return value
}

function copyOut(client: pg.Client, text: string): Promise<Buffer[]> {
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

async function runCopy(client: pg.Client, text: string) {
  const rows = (await copyOut(client, text)).map((bytes) => ({ bytes }))
  const fields = [{ dataTypeId: BYTEA as number, name: 'bytes' }]
  return { command: 'COPY' as never, fields, rowCount: rows.length, rows }
}

const toResult = ({ command, fields, rowCount, rows }: pg.QueryResult) => ({
  command: command as never,
  fields: fields.map(({ dataTypeID, name }) => ({ dataTypeId: dataTypeID, name })),
  rowCount,
  rows,
})

async function run(client: pg.Client, { text, values, name }: Statement) {
  if (isCopy(text)) return runCopy(client, text)
  const result = (await client.query({
    text,
    ...(values === undefined ? {} : { values }),
    ...(name === undefined ? {} : { name }),
  })) as pg.QueryResult | pg.QueryResult[]
  return toResult(Array.isArray(result) ? (result[0] as pg.QueryResult) : result)
}

/**
 * Returns how a connection runs its statements. Behind a pooler unnamed, because the next backend lacks the prepared
 * statement.
 */
function createRunner(client: pg.Client, pooled: boolean, limits: Limits) {
  const send = (statement: Statement) => run(client, statement)
  if (!pooled) return joining(client, { send, read: toResult })
  return ({ text, values }: Statement) => send({ text: text === BEGIN ? beginWithin(limits) : text, values })
}

/** Creates slonik's driver for the database at `url`. Connects once to detect a pooler. */
export const createDriver = (url: string, limits: Limits): DriverFactory =>
  createDriverFactory(async ({ driverConfiguration: { connectionTimeout } }) => {
    const address = readDatabaseUrl(url)
    const pooled = await isPooled(url)
    const settings = {
      types,
      keepAlive: true,
      ...(connectionTimeout === 'DISABLE_TIMEOUT' ? {} : { connectionTimeoutMillis: connectionTimeout }),
      ...(pooled ? {} : startupParameters(limits)),
    }
    const patience = limits.statement + SILENCE_MS
    return {
      createPoolClient: async ({ clientEventEmitter }) => {
        const client = new pg.Client({ ...(await wayTo(address)), ...settings })
        const onError = (error: unknown) => clientEventEmitter.emit('error', toldToSlonik(error) as Error)
        client.on('error', onError)
        client.on('notice', ({ message = '' }) => clientEventEmitter.emit('notice', { message }))
        const runNext = createRunner(client, pooled, limits)
        return {
          connect: async () => {
            await client.connect()
            await setSession(client).catch((error: unknown) => {
              client.end().catch(() => {})
              throw error
            })
          },
          end: () => client.end(),
          query: (text, values, options) =>
            answered(runNext({ text, values, name: options?.name }), patience, onError).catch((error) =>
              Promise.reject(toldToSlonik(error)),
            ),
          stream: () => {
            throw new Error('streaming is not supported')
          },
        }
      },
    }
  })

const startupParameters = ({ statement, lock, idle }: Limits): pg.ClientConfig => ({
  statement_timeout: statement,
  idle_in_transaction_session_timeout: idle,
  ...(lock > 0 ? { lock_timeout: lock } : {}),
})
