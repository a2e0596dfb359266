/**
 * The test server behind TLS, with a certificate of the test's own for `localhost`; it refuses those who come without,
 * in PostgreSQL's words. Promises to change nothing of what it passes on.
 */
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
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

/** A way to the database at `url` over TLS: its port, and the file with the authority of its certificate. */
export async function startDatabaseTls(t: Test, url: string): Promise<{ port: number; authority: string }> {
  const target = new URL(url)
  const { pem, key_pem } = makeCertificate(['localhost'])
  const open = new Set<Socket>()
  const serve = (client: Socket): void => {
    open.add(client)
    client.once('close', () => open.delete(client)).on('error', () => {})
    client.once('data', (first) => {
      if (first.length !== 8 || first.readInt32BE(4) !== SSL_REQUEST) return void client.end(NO_ENCRYPTION)
      client.write('S')
      const inside = new TLSSocket(client, { isServer: true, cert: pem, key: key_pem })
      const server = connect(Number(target.port || 5432), target.hostname)
      inside.pipe(server).pipe(inside)
      inside.on('error', () => server.destroy()).on('close', () => server.destroy())
      server.on('error', () => inside.destroy())
    })
  }
  const proxy = createServer(serve)
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    proxy.close()
    for (const client of open) client.destroy()
  })
  const authority = join(t.testdir(), 'authority.pem')
  await writeFile(authority, pem)
  return { port: (proxy.address() as AddressInfo).port, authority }
}
