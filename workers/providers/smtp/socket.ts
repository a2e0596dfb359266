/**
 * The sockets that SMTP connections run on: they bound what a server may say.
 * Promises: between two commands of ours a server says 32 KiB at most, under TLS too, and is hung up on beyond that,
 * so that the client never holds more unread replies (it takes each empty line as one, and a tick for each). Must not
 * read what is said.
 */
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { SMTPTransportOptions } from 'nodemailer'

/** Fifty recipients' refusals of several lines each, or a handshake with a long chain of certificates. */
const MAX_REPLY_BYTES = 32 * 1024
/** What is written at once and larger than this is a piece of a message: it gives a server no right to speak. */
const MAX_COMMAND_BYTES = 15 * 1024
const SOCKET_TIMEOUT_MS = 10_000

/** Hangs up on a server that says more than it was asked. */
function limitWords(socket: Socket): Socket {
  let left = MAX_REPLY_BYTES
  let written = 0
  socket.on('data', (chunk: Buffer) => {
    const since = socket.bytesWritten - written
    written = socket.bytesWritten
    if (since > 0 && since <= MAX_COMMAND_BYTES) left = MAX_REPLY_BYTES
    left -= chunk.length
    if (left >= 0 || socket.destroyed) return
    // At once, so that the client is closed before it reads this piece.
    socket.emit('error', new Error(`the server said more than ${MAX_REPLY_BYTES / 1024} KiB at once`))
    socket.destroy()
  })
  // It flows once the client reads it.
  return socket.pause()
}

/** The socket as a stream of JavaScript's, so that its bytes pass by us. */
function streamOf(socket: Socket): Duplex {
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket
    .on('data', (chunk) => {
      if (!stream.push(chunk)) socket.pause()
    })
    .on('end', () => stream.push(null))
    .on('error', (error) => stream.destroy(error))
    .on('close', () => stream.destroy())
  return stream
}

/** Opens a connection for nodemailer, by the options that it would use itself. */
export const openSocket: NonNullable<SMTPTransportOptions['getSocket']> = (options, done) => {
  const { host = 'localhost', port, secure, localAddress, connectionTimeout = SOCKET_TIMEOUT_MS } = options
  const socket = connect({
    host,
    port: Number(port) || (secure ? 465 : 587),
    ...(localAddress === undefined ? {} : { localAddress }),
    // A slow address gets its share of the time before the next one is tried.
    autoSelectFamilyAttemptTimeout: Math.max(connectionTimeout / 4, 10),
  })
  const timer = setTimeout(() => socket.destroy(new Error('Connection timeout')), connectionTimeout)
  const fail = (error: Error): void => {
    clearTimeout(timer)
    done(Object.assign(error, { command: 'CONN' }))
  }
  socket.once('error', fail).once('connect', () => {
    clearTimeout(timer)
    socket.off('error', fail)
    const tls = {
      ...options.tls,
      // Read through the socket, not past it as TLS does by itself.
      get socket() {
        return streamOf(socket) as Socket
      },
    }
    done(null, { connection: limitWords(socket), tls })
  })
}
