/**
 * Connections of pg: which server to speak to, and how.
 * Promises: of several servers the first that takes writes is chosen, again after a failover; sslmode allow and prefer
 * fall back to plain as libpq does; a connection pooler is recognised by the session state that it cannot keep.
 */
import { randomInt } from 'node:crypto'
import { Client, type ClientConfig, defaults } from 'pg'
import { type DatabaseAddress, readDatabaseUrl } from './address.ts'

const CONNECT_TIMEOUT_MS = 3_000

/** The default of every connection, pg-boss’s own too. */
const named: { fallback_application_name?: string | undefined } = defaults

/** Sets the application_name of this process's connections, unless a URL names one. */
export function nameConnections(process: 'web' | 'worker' | 'admin' | 'release'): void {
  named.fallback_application_name = `heliograph ${process}`
}

/** pg's words for it; it has no code. */
export const NO_TLS = 'The server does not support SSL connections'

/**
 * What values are read and written by, whatever the role or the database has set: dates as the driver reads them, days
 * that begin in UTC, backslashes that are backslashes. Poolers keep these three for a client between its transactions.
 */
const SESSION = {
  text: "set datestyle to 'ISO, YMD'; set timezone to 'UTC'; set standard_conforming_strings to on",
  query_timeout: CONNECT_TIMEOUT_MS,
}

/** Puts a new connection's session in order. */
export const setSession = async (client: Client): Promise<void> => void (await client.query(SESSION))

/** So that a statement takes as long as it takes. Not behind a pooler, which would hand this on with its connection. */
export const liftTimeLimit = async (client: Client): Promise<void> =>
  void (await client.query('set statement_timeout = 0'))

/** A connection that was opened, or the error; nothing is left behind. */
async function open(config: ClientConfig): Promise<Client> {
  const client = new Client({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true, ...config })
  // Errors surface as the end of the connection, or of the statement under way.
  client.on('error', () => {})
  try {
    await client.connect()
    await setSession(client)
    return client
  } catch (error) {
    // Connected or not, a failed client must not hold a connection.
    client.end().catch(() => {})
    throw error
  }
}

async function openLeniently(config: ClientConfig, lenient: boolean): Promise<[Client, ClientConfig]> {
  try {
    return [await open(config), config]
  } catch (error) {
    if (!lenient || !(error instanceof Error) || error.message !== NO_TLS) throw error
    const plain = { ...config, ssl: false }
    return [await open(plain), plain]
  }
}

const takesWrites = async (client: Client): Promise<boolean> => {
  const { rows } = await client.query<{ it: string }>('select current_setting($1) as it', [
    'transaction_read_only',
  ])
  return rows[0]?.it === 'off'
}

/**
 * How to connect just now. Looks for it with connections of its own only where the URL leaves a choice.
 * @throws what the last of the servers said, when none will do.
 */
export async function wayTo({ hosts, lenient }: DatabaseAddress): Promise<ClientConfig> {
  if (hosts.length === 1 && !lenient) return hosts[0]
  let fault: unknown
  for (const host of hosts) {
    try {
      const [client, way] = await openLeniently(host, lenient)
      const fits = await takesWrites(client).finally(() => client.end())
      if (fits || hosts.length === 1) return way
      fault = Object.assign(new Error('none of its servers accepts writes'), { code: '25006' })
    } catch (error) {
      fault = error
    }
  }
  throw fault
}

/** Connects to the database at `url`. `extra` adds settings of pg's. */
export const connect = async (url: string, extra: ClientConfig = {}): Promise<Client> =>
  open({ ...(await wayTo(readDatabaseUrl(url))), ...extra })

/**
 * Settings for a pool of pg's own, such as pg-boss's: each of its connections is put in order, and where the URL names
 * several servers, looks for the one that takes writes.
 * @param further what else its connections begin with.
 */
export async function poolConfig(
  url: string,
  further: (client: Client) => Promise<void> = async () => {},
): Promise<ClientConfig> {
  const address = readDatabaseUrl(url)
  const way = await wayTo(address)
  const seek = async (): Promise<ClientConfig> => (address.hosts.length === 1 ? way : await wayTo(address))
  function Seeking(config: ClientConfig): Client {
    const client = new Client(config)
    const connectNow = client.connect.bind(client) as () => Promise<unknown>
    const seekAndConnect = async (): Promise<void> => {
      const { host = client.host, port = client.port } = await seek()
      Object.assign(client, { host, port })
      await connectNow()
      await setSession(client)
      await further(client)
    }
    const connectFor = (done: (error?: Error) => void) => void seekAndConnect().then(() => done(), done)
    return Object.assign(client, { connect: connectFor })
  }
  // pg-boss has a name of its own otherwise.
  const application_name = way.application_name ?? named.fallback_application_name
  return { ...way, ...(application_name ? { application_name } : {}), Client: Seeking } as ClientConfig
}

/**
 * Whether a pooler such as PgBouncer stands between: it hands out keys of its own for cancelling, so that the number
 * in the key is not the backend's. What lasts for a session (settings, prepared statements, LISTEN) may not be
 * relied on then: the next transaction may be on another backend.
 */
export async function isPooled(url: string): Promise<boolean> {
  const client = await connect(url)
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    return (client as Client & { processID: number | null }).processID !== rows[0]?.pid
  } finally {
    await client.end()
  }
}

/** Beyond any random number that is drawn here. */
const ANY_LOCK = 2 ** 48 - 1
const COMPARE_WITHIN = 5_000

/**
 * Whether two URLs lead to the same schema of the same database: a lock that is held through one is taken for the
 * other. That needs no rights, works through poolers, and distinguishes a database from its copy.
 */
export async function isSameDatabase(url: string, other: string): Promise<boolean> {
  if (url === other) return true
  const clients: Client[] = []
  const query = `select pg_try_advisory_xact_lock(${randomInt(ANY_LOCK)}) as free, current_schema() as schema`
  try {
    const seen: { free: boolean; schema: string }[] = []
    for (const each of [url, other]) {
      const client = await connect(each, { query_timeout: COMPARE_WITHIN })
      clients.push(client)
      await client.query('begin')
      const { rows } = await client.query<{ free: boolean; schema: string }>(query)
      seen.push(...rows)
    }
    return seen[1]?.free === false && seen[0]?.schema === seen[1].schema
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()))
  }
}
