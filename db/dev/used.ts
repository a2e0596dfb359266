/**
 * What `npm start` of this checkout stores in `.data` for the CLI: its port, and the databases it has used,
 * by the files of their demo teams. The CLI checks this before it encrypts, because `.data/secret-key` only
 * belongs to these databases.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the demo team of a database is kept in `data`; without a URL that of the embedded one. */
export function demoFile(data: string, url: string | undefined): string {
  if (url === undefined) return join(data, 'demo.json')
  // The same database with a new password is the same database. As text: several servers, or a socket's directory
  // beside a user, are no URL to JavaScript.
  const place = url.replace(/^([a-z]+:\/\/[^:/?#]*):[^/?#]*@/, '$1@')
  return join(data, `demo-${createHash('sha256').update(place).digest('hex').slice(0, 12)}.json`)
}

/** Whether `npm start` has used this database: the embedded one, by its URL or without one, or another. */
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

export const keepPort = (data: string, port: number): void =>
  writeFileSync(join(data, PORT_FILE), `${port}\n`)

/** The port that was kept last. Null for none. */
export function keptPort(data: string): number | null {
  try {
    return Number.parseInt(readFileSync(join(data, PORT_FILE), 'utf8'), 10) || null
  } catch {
    return null
  }
}
