/**
 * Opens the sockets of SMTP connections, and limits the bytes from a server. Between two of our commands it may send
 * 32 KiB, also over TLS. If it sends more, the connection is closed, because the client would keep unread replies in
 * memory and process each empty line in a separate tick.
 */
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { SMTPTransportOptions } from 'nodemailer'

/** Fifty recipients' rejections of several lines each, or a handshake with a long certificate chain. */
const MAX_REPLY_BYTES = 32 * 1024
/** A larger write is a piece of a message, which doesn't reset the server's limit. */
const MAX_COMMAND_BYTES = 15 * 1024
const SOCKET_TIMEOUT_MS = 10_000

function describeLimit(socket: Socket): Socket {
  let left = MAX_REPLY_BYTES
  let written = 0
  socket.on('data', (chunk: Buffer) => {
    const since = socket.bytesWritten - written
    written = socket.bytesWritten
    if (since > 0 && since <= MAX_COMMAND_BYTES) left = MAX_REPLY_BYTES
    left -= chunk.length
    if (left >= 0 || socket.destroyed) return
    // At once, so that the client is closed before it reads this piece.
    socket.emit('error', new Error(`the server sent more than ${MAX_REPLY_BYTES / 1024} KiB at once`))
    socket.destroy()
  })
  // It flows once the client reads it.
  return socket.pause()
}

/** Wraps the socket in a JavaScript stream, so that its bytes pass through here. */
function toStream(socket: Socket): Duplex {
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

export const openSocket: NonNullable<SMTPTransportOptions['getSocket']> = (options, done) => {
  const { host = 'localhost', port, secure, localAddress, connectionTimeout = SOCKET_TIMEOUT_MS } = options
  const socket = connect({
    host,
    port: Number(port) || (secure ? 465 : 587),
    ...(localAddress === undefined ? {} : { localAddress }),
    // A slow address gets part of the time before the next one is tried.
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
      // TLS would read past the socket by itself, so it reads through this stream.
      get socket() {
        return toStream(socket) as Socket
      },
    }
    done(null, { connection: describeLimit(socket), tls })
  })
}
