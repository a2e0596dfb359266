/**
 * Puts the test server behind TLS, with a certificate for `localhost`, and rejects connections without TLS
 * with PostgreSQL's message. Also provides a server without TLS, in case the test server has it. It doesn't
 * change the data.
 */
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { makeCertificate } from './certificate.ts'

const SSL_REQUEST = 80_877_103

function errorResponse(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const size = Buffer.alloc(4)
  size.writeInt32BE(fields.length + 4)
  return Buffer.concat([Buffer.from('E'), size, fields])
}

const NO_ENCRYPTION = errorResponse('28000', 'no pg_hba.conf entry for host "127.0.0.1", no encryption')

const isSslRequest = (first: Buffer): boolean => first.length === 8 && first.readInt32BE(4) === SSL_REQUEST

/** Connects a client's stream to the database at `url`. */
function passOn(client: Duplex, url: string): Socket {
  const { port, hostname } = new URL(url)
  const server = connect(Number(port || 5432), hostname)
  client.pipe(server).pipe(client)
  client.on('error', () => server.destroy()).on('close', () => server.destroy())
  server.on('error', () => client.destroy())
  return server
}

/** Listens on a free port until the test ends. @param answer gets each client's first bytes. */
async function serve(t: Test, answer: (client: Socket, first: Buffer) => void): Promise<number> {
  const open = new Set<Socket>()
  const proxy = createServer((client) => {
    open.add(client)
    client.once('close', () => open.delete(client)).on('error', () => {})
    client.once('data', (first) => answer(client, first))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    proxy.close()
    for (const client of open) client.destroy()
  })
  return (proxy.address() as AddressInfo).port
}

/**
 * Starts a TLS proxy to the database at `url`. @returns its port, and the file with its certificate
 * authority.
 */
export async function startDatabaseTls(t: Test, url: string): Promise<{ port: number; authority: string }> {
  const { pem, key_pem } = makeCertificate(['localhost'])
  const port = await serve(t, (client, first) => {
    if (!isSslRequest(first)) return void client.end(NO_ENCRYPTION)
    client.write('S')
    passOn(new TLSSocket(client, { isServer: true, cert: pem, key: key_pem }), url)
  })
  const authority = join(t.testdir(), 'authority.pem')
  await writeFile(authority, pem)
  return { port, authority }
}

/** Starts a proxy without TLS to the database at `url`. @returns its URL. */
export async function startDatabaseWithoutTls(t: Test, url: string): Promise<string> {
  const port = await serve(t, (client, first) => {
    if (!isSslRequest(first)) return void passOn(client, url).write(first)
    client.once('data', (next) => void passOn(client, url).write(next))
    client.write('N')
  })
  return Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href
}
