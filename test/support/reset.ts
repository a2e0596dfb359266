/** Ends a connection with a reset, as a peer does that fell over. */
import type { Socket } from 'node:net'

/**
 * Resets it. A socket that has said its last word already is only destroyed: Node cannot reset one that is shutting
 * down, keeps its handle for ever, and then never ends its process.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
