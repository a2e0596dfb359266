/**
 * Stores what `npm start` of this checkout used in `.data`: its port, and the databases, as files about their demo
 * teams. The CLI checks this before it encrypts, because `.data/secret-key` only belongs to these databases.
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

export const storePort = (data: string, port: number): void =>
  writeFileSync(join(data, PORT_FILE), `${port}\n`)

/** Returns the last stored port, or null. */
export function readPort(data: string): number | null {
  try {
    return Number.parseInt(readFileSync(join(data, PORT_FILE), 'utf8'), 10) || null
  } catch {
    return null
  }
}
