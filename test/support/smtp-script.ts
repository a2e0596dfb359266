/**
 * A raw SMTP server that misbehaves at one step: disconnects, resets, stays silent, sends byte by byte, or
 * sends a given reply. Only for errors that a server library can't produce. Use smtp-sink.ts for others.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { reset } from './reset.ts'
import type { Teardown } from './smtp-sink.ts'

export type Step = 'banner' | 'ehlo' | 'auth' | 'mail' | 'rcpt' | 'data' | 'dot' | 'rset' | 'quit'

/** `drip` sends an endless reply, one byte at a time. A string is sent with `\r\n` added. */
export type Fault = 'drop' | 'reset' | 'hang' | 'drip' | (string & {})

type ScriptedSmtp = {
  url: string
  /** The steps that clients reached, in order, over all connections. */
  steps: Step[]
  /** Every line from clients, outside of messages. */
  lines: string[]
  /** Returns the number of connections accepted so far. */
  connections(): number
  /** Closes every connection, as a server does with idle ones. */
  dropAll(): void
}

const REPLIES: Record<Step, string> = {
  banner: '220 scripted ESMTP',
  ehlo: '250 scripted',
  auth: '235 OK',
  mail: '250 OK',
  rcpt: '250 OK',
  data: '354 go on',
  dot: '250 2.0.0 taken',
  rset: '250 OK',
  quit: '221 bye',
}

/** `faultAt` returns the fault at a step of the nth connection (from 1). undefined is the normal reply. */
export async function startSmtpScript(
  t: Teardown,
  faultAt: (step: Step, connection: number) => Fault | undefined,
): Promise<ScriptedSmtp> {
  const sockets = new Set<Socket>()
  const steps: Step[] = []
  const lines: string[] = []
  let connections = 0
  const server = createServer((socket) => {
    const nth = ++connections
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    converse(socket, (step, line) => {
      const reply = faultAt(step, nth) ?? REPLIES[step] ?? '502 unknown'
      steps.push(step)
      if (line !== '') lines.push(line)
      act(socket, reply)
      if (step === 'quit') socket.end()
      return reply.startsWith('354')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const dropAll = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(async () => {
    dropAll()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `smtp://127.0.0.1:${port}`, steps, lines, connections: () => connections, dropAll }
}

/** Splits a client's input into steps. `reach` returns true if a message follows, up to its final dot. */
function converse(socket: Socket, reach: (step: Step, line: string) => boolean): void {
  let pending = ''
  let in_data = false
  reach('banner', '')
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1')
    for (;;) {
      const end = in_data ? pending.indexOf('\r\n.\r\n') : pending.indexOf('\r\n')
      if (end < 0) return
      const line = in_data ? '' : pending.slice(0, end)
      pending = pending.slice(end + (in_data ? 5 : 2))
      in_data = reach((in_data ? 'dot' : line.slice(0, 4).toLowerCase()) as Step, line)
    }
  })
}

function act(socket: Socket, fault: Fault): void {
  if (fault === 'hang') return
  if (fault === 'drop') socket.end()
  else if (fault === 'reset') reset(socket)
  else if (fault === 'drip') drip(socket)
  else socket.write(`${fault}\r\n`)
}

function drip(socket: Socket): void {
  socket.write('250-')
  const timer = setInterval(() => socket.write('.'), 50)
  socket.on('close', () => clearInterval(timer))
}
