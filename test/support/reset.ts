/** Ends a connection with a reset, as a peer does that fell over. */
import type { Socket } from 'node:net'

/**
 * Resets it. A socket that has ended its side is only destroyed, because Node can't reset one that is
 * shutting down and would keep its handle, and so its process, forever.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
