/** Starts the bench's mail and HTTP servers: Debian's smtp-sink, our slow sink, and Postfix with OpenDKIM. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { startPostfix } from '../support/postfix.ts'
import { programMissing, runProgram } from '../support/programs.ts'
import { Missing } from './figures.ts'

/** Debian's package for each program that a row needs. */
const PACKAGES = {
  postfix: 'postfix',
  'smtp-sink': 'postfix',
  'smtp-source': 'postfix',
  opendkim: 'opendkim',
}

/** @throws Missing with the package to install. */
export async function need(...programs: (keyof typeof PACKAGES)[]): Promise<void> {
  for (const program of programs) {
    const missing = await programMissing(program, PACKAGES[program])
    if (missing) throw new Missing(missing)
  }
  if (programs.includes('postfix') && process.getuid?.() !== 0)
    throw new Missing('Postfix must be run as root')
}

/** Starts an HTTP server with the given response. */
export async function startHttp(answer: RequestListener): Promise<{ url: string; close(): void }> {
  const server = createHttpServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A server that accepts and counts emails. */
export type Sink = {
  port: number
  taken(): number
  /** Resolves once `count` emails have been accepted since the sink started. */
  until(count: number): Promise<void>
  stop(): Promise<void>
}

const PATIENCE = 300_000

const untilTaken = async (taken: () => number, count: number): Promise<void> => {
  const late = performance.now() + PATIENCE
  while (taken() < count) {
    if (performance.now() > late) throw new Error(`only ${taken()} of ${count} mails arrived`)
    await sleep(5)
  }
}

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null) return
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exit
}

/** Starts Debian's smtp-sink. It is written in C, so it is not the bottleneck. */
export async function startSmtpSink(): Promise<Sink> {
  await need('smtp-sink')
  const port = await freePort()
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('smtp-sink', [...user, '-c', `127.0.0.1:${port}`, '1000'])
  let taken = 0
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    const counts = [...text.matchAll(/mesg=(\d+)/g)]
    taken = Number(counts.at(-1)?.[1] ?? taken)
  })
  await sleep(300)
  return {
    port,
    taken: () => taken,
    until: (count) => untilTaken(() => taken, count),
    stop: () => stopChild(child),
  }
}

/** Starts a sink that responds to each email after `delay` milliseconds, and reports it. */
export async function startSlowSink(delay: number, onMail: (text: string) => void = () => {}): Promise<Sink> {
  let taken = 0
  const sockets = new Set<Socket>()
  const serve = (socket: Socket): void => {
    let body: string | null = null
    let rest = ''
    sockets.add(socket)
    socket.setNoDelay().setEncoding('latin1').write('220 sink.test ESMTP\r\n')
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    socket.on('data', (chunk: string) => {
      rest += chunk
      for (;;) {
        if (body !== null) {
          const end = `\r\n${rest}`.indexOf('\r\n.\r\n')
          if (end < 0) return
          const text = rest.slice(0, end)
          rest = rest.slice(end + 3)
          body = null
          taken += 1
          onMail(text)
          setTimeout(() => socket.write('250 2.0.0 Ok\r\n'), delay)
          continue
        }
        const line = rest.indexOf('\r\n')
        if (line < 0) return
        const verb = rest.slice(0, 4).toUpperCase()
        rest = rest.slice(line + 2)
        if (verb === 'EHLO') socket.write('250-sink.test\r\n250-PIPELINING\r\n250 8BITMIME\r\n')
        else if (verb === 'DATA') {
          body = ''
          socket.write('354 Go ahead\r\n')
        } else if (verb === 'QUIT') socket.end('221 2.0.0 Bye\r\n')
        else socket.write('250 2.0.0 Ok\r\n')
      }
    })
  }
  const server = createServer(serve)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    taken: () => taken,
    until: (count) => untilTaken(() => taken, count),
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Starts OpenDKIM, which signs for example.com with its own key. @returns its port. */
async function startOpenDkim(): Promise<{ port: number; stop(): Promise<void> }> {
  await need('opendkim')
  const home = await mkdtemp(join(tmpdir(), 'bench-opendkim-'))
  const port = await freePort()
  await runProgram('openssl', ['genrsa', '-out', join(home, 'dkim.pem'), '2048'])
  await chmod(join(home, 'dkim.pem'), 0o600)
  const settings = {
    Socket: `inet:${port}@127.0.0.1`,
    Domain: 'example.com',
    Selector: 'bench',
    Mode: 's',
    KeyFile: join(home, 'dkim.pem'),
    Canonicalization: 'relaxed/relaxed',
    RequireSafeKeys: 'no',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`)
  await writeFile(join(home, 'opendkim.conf'), lines.join(''))
  const child = spawn('opendkim', ['-f', '-x', join(home, 'opendkim.conf')], { stdio: 'ignore' })
  await sleep(500)
  if (child.exitCode !== null) throw new Error(`opendkim ended at once: ${child.exitCode}`)
  const stop = async () => {
    await stopChild(child)
    await rm(home, { recursive: true, force: true })
  }
  return { port, stop }
}

/** Starts a Postfix that relays everything to a port, with or without signatures by OpenDKIM. */
export async function startRelayingPostfix(relay_port: number, { signing }: { signing: boolean }) {
  await need('postfix', 'smtp-source')
  const endings: (() => Promise<void>)[] = []
  const teardown = (end: () => Promise<void>): void => void endings.unshift(end)
  const dkim = signing ? await startOpenDkim() : null
  if (dkim) teardown(dkim.stop)
  const { port } = await startPostfix({ teardown }, { relay_port, milter_port: dkim?.port })
  return {
    port,
    async stop() {
      for (const end of endings) await end()
    },
  }
}

/** Sends emails to an SMTP server as fast as it accepts them, over 20 connections. */
export const pour = async (port: number, count: number, bytes: number): Promise<void> => {
  const options = ['-l', bytes, '-m', count, '-s', 20, '-f', 'hello@example.com', '-t', 'someone@example.org']
  await runProgram('smtp-source', ['-d', ...options.map(String), `127.0.0.1:${port}`])
}
