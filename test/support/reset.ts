/** Ends a connection with a reset, like a crashed peer. */
import type { Socket } from 'node:net'

/**
 * Resets a socket. One that has ended its side is only destroyed, because Node can't reset a socket that is
 * shutting down. It would keep the handle and never exit.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
