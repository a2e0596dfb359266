/** Cuts off requests whose bodies stall or trickle. Bytes that wait for our own reader count as progress. */
import type { IncomingMessage } from 'node:http'
import { hasBody } from './read-body.ts'

/** How many bytes of a body must arrive in each `window` milliseconds, unless it ends. */
export type BodyPace = { bytes: number; window: number }

type ReadState = { at: number; read: number }

/** Checks every `interval` milliseconds. @param cut is called once for each request that is too slow */
export function watchBodies(
  { bytes, window }: BodyPace,
  { interval, cut }: { interval: number; cut: (request: IncomingMessage) => void },
) {
  const coming = new Map<IncomingMessage, ReadState>()
  const readState = ({ socket }: IncomingMessage): ReadState => ({
    at: performance.now(),
    read: socket.bytesRead,
  })
  const look = (): void => {
    for (const [request, mark] of coming) {
      if (request.complete || request.destroyed) coming.delete(request)
      else if (performance.now() - mark.at < window) continue
      else if (request.readableLength > 0 || request.socket.bytesRead - mark.read >= bytes) {
        coming.set(request, readState(request))
      } else {
        coming.delete(request)
        cut(request)
      }
    }
  }
  const timer = setInterval(look, interval).unref()
  return {
    add(request: IncomingMessage): void {
      if (hasBody(request)) coming.set(request, readState(request))
    },
    /** Stops watching after the response, unless the rest of the body is still arriving. */
    answered(request: IncomingMessage): void {
      if (request.complete) coming.delete(request)
    },
    end: (): void => clearInterval(timer),
  }
}
