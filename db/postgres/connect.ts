/**
 * Connects with pg. If a URL has several servers, the first that accepts writes is chosen, again after a failover.
 * sslmode allow and prefer fall back to plain text like in libpq. A connection pooler is detected because it can't
 * keep session state.
 */
import { randomInt } from 'node:crypto'
import { Client, type ClientConfig, defaults } from 'pg'
import { type DatabaseAddress, readDatabaseUrl } from './address.ts'

const CONNECT_TIMEOUT_MS = 3_000

/** The default of every connection, including pg-boss’s. */
const named: { fallback_application_name?: string | undefined } = defaults

/** Sets the application_name of this process's connections, unless a URL names one. */
export function nameConnections(process: 'web' | 'worker' | 'admin' | 'release'): void {
  named.fallback_application_name = `heliograph ${process}`
}

/** pg's error message, because the error has no code. */
export const NO_TLS = 'The server does not support SSL connections'

/**
 * Session settings for values, whatever the defaults of the role or database: the date format that the driver parses,
 * UTC days, and standard strings. Poolers keep these three between a client's transactions.
 */
const SESSION = {
  text: "set datestyle to 'ISO, YMD'; set timezone to 'UTC'; set standard_conforming_strings to on",
  query_timeout: CONNECT_TIMEOUT_MS,
}

export const setSession = async (client: Client): Promise<void> => void (await client.query(SESSION))

/** Removes the statement timeout. Not behind a pooler, which would pass the setting on with its connection. */
export const liftTimeLimit = async (client: Client): Promise<void> =>
  void (await client.query('set statement_timeout = 0'))

/** Opens a connection. A failure leaves nothing open. */
async function open(config: ClientConfig): Promise<Client> {
  const client = new Client({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true, ...config })
  // Errors surface as the end of the connection, or of the statement under way.
  client.on('error', () => {})
  try {
    await client.connect()
    await setSession(client)
    return client
  } catch (error) {
    // A failed client must not keep a connection, whether it connected or not.
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
 * Returns how to connect. Only probes if the URL leaves a choice. @throws the error of the last server if none is
 * suitable.
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
 * Returns settings for pg's own pools, such as pg-boss's. Each connection gets the session settings, and finds the
 * server that accepts writes.
 * @param further additional set-up of each connection.
 */
export async function poolConfig(url: string, further: (client: Client) => Promise<void> = async () => {}) {
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
  // Otherwise pg-boss sets its own name.
  const application_name = way.application_name ?? named.fallback_application_name
  return { ...way, ...(application_name ? { application_name } : {}), Client: Seeking } as ClientConfig
}

/**
 * True if a pooler such as PgBouncer is in between. It issues its own cancel keys, so that the process ID in the key
 * isn't the backend's. Session state (settings, prepared statements, LISTEN) can't be used then.
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
 * True if two URLs lead to the same schema of the same database: a lock acquired through one is visible through the
 * other. Works through poolers, and distinguishes a database from its copy.
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
