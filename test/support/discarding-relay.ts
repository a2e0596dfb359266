/**
 * An SMTP server for large emails. It reads a message's header and discards the rest, so that it isn't the
 * bottleneck. It only accepts email.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Teardown } from './smtp-sink.ts'

/** `id` is the UUID in its Message-ID. `at` is from `performance.now()`. */
export type Taken = { id: string; subject: string; bytes: number; at: number }

type DiscardingRelay = { url: string; taken: readonly Taken[] }

/** Delays the response to a message, by its subject, until the promise resolves. */
type Answering = (subject: string) => Promise<unknown>
type RelayOptions = { answering?: Answering; onTaken?: (mail: Taken) => void }

const MESSAGE_ID = /^message-id:.*?([0-9a-f]{8}-[0-9a-f-]{27})/im
const END = Buffer.from('\r\n.\r\n')

/** Serves one connection. */
function converse(socket: Socket, onTaken: (mail: Taken) => void, answering: Answering): void {
  let command = ''
  let message: { head: string; tail: Buffer; bytes: number } | null = null
  const answer = (text: string): void => void socket.write(`${text}\r\n`)
  const obey = (line: string): void => {
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO') answer('250-relay.test\r\n250-PIPELINING\r\n250 SIZE 0')
    else if (verb === 'QUIT') socket.end('221 bye\r\n')
    else if (verb === 'DATA') {
      message = { head: '', tail: Buffer.alloc(0), bytes: 0 }
      answer('354 go on')
    } else answer('250 OK')
  }
  const take = async ({ head, bytes }: { head: string; bytes: number }): Promise<void> => {
    const [subject = '', id = ''] = [/^Subject: (.*)\r$/m, MESSAGE_ID].map((field) => field.exec(head)?.[1])
    await answering(subject)
    onTaken({ id, subject, bytes, at: performance.now() })
    if (socket.writable) answer('250 2.0.0 taken')
  }
  answer('220 relay.test ESMTP')
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    if (message === null) {
      command += chunk.toString('latin1')
      for (let end = command.indexOf('\r\n'); end >= 0 && message === null; end = command.indexOf('\r\n')) {
        const line = command.slice(0, end)
        command = command.slice(end + 2)
        obey(line)
      }
      return
    }
    // Clients send nothing else before the response.
    message.bytes += chunk.length
    if (message.head.length < 8_192) message.head += chunk.toString('latin1').slice(0, 8_192)
    message.tail = Buffer.concat([message.tail, chunk.subarray(-END.length)]).subarray(-END.length)
    // Freed at once, because megabytes of garbage would cause full collections of the heap.
    ;(chunk.buffer as ArrayBuffer).transfer(0)
    if (!message.tail.equals(END)) return
    const whole = message
    message = null
    void take(whole)
  })
}

/** Starts the relay on a free port of 127.0.0.1. It closes with the test. */
export async function startDiscardingRelay(
  t: Teardown,
  { answering = async () => {}, onTaken = () => {} }: RelayOptions = {},
): Promise<DiscardingRelay> {
  const taken: Taken[] = []
  const take = (mail: Taken): void => {
    taken.push(mail)
    onTaken(mail)
  }
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)))
    converse(socket, take, answering)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return { url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}?ignoreTLS=true`, taken }
}
