/**
 * Stores what `npm start` of this checkout used in `.data`: its port, the URL of Meta's API, and the databases, as
 * files about their demo teams. The CLI checks this before it encrypts, because `.data/secret-key` only belongs to
 * these databases.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the path of the file about a database's demo team. Without a URL, it is the embedded database. */
export function demoFile(data: string, url: string | undefined): string {
  if (url === undefined) return join(data, 'demo.json')
  // Without the password, because a new password doesn't change the database. As text, because `URL` can't
  // parse several hosts or a socket directory with a user.
  const place = url.replace(/^([a-z]+:\/\/[^:/?#]*):[^/?#]*@/, '$1@')
  return join(data, `demo-${createHash('sha256').update(place).digest('hex').slice(0, 12)}.json`)
}

/** True if `npm start` has used this database. Without a URL, or with its URL, it is the embedded one. */
export function wasUsed(data: string, url: string | undefined): boolean {
  return url === undefined || existsSync(demoFile(data, url)) || embeddedUrl(data) === url
}

function embeddedUrl(data: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(data, 'server.json'), 'utf8')) as { url?: string }).url
  } catch {
    return undefined
  }
}

const PORT_FILE = 'port'
const GRAPH_API_FILE = 'graph-api'

const store = (data: string, file: string, value: string): void =>
  writeFileSync(join(data, file), `${value}\n`)

/** Returns a stored value, or null. */
function read(data: string, file: string): string | null {
  try {
    return readFileSync(join(data, file), 'utf8').trim() || null
  } catch {
    return null
  }
}

export const storePort = (data: string, port: number): void => store(data, PORT_FILE, String(port))

/** Returns the last stored port, or null. */
export const readPort = (data: string): number | null =>
  Number.parseInt(read(data, PORT_FILE) ?? '', 10) || null

/** @param url the sandbox's, unless another one was set. */
export const storeGraphApi = (data: string, url: string): void => store(data, GRAPH_API_FILE, url)

/** Returns the last stored URL of Meta's API, or null. */
export const readGraphApi = (data: string): string | null => read(data, GRAPH_API_FILE)
