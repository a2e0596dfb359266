/**
 * Notices requests whose bodies do not get on, however large they are.
 * Promises: a body that gets on is never cut for its size; one that stalls or drips is, soon after its time. What
 * waits here for its own reader is nobody's fault, and counts as getting on.
 */
import type { IncomingMessage } from 'node:http'
import { hasBody } from './read-body.ts'

/** How many bytes a body must bring, or its end, in each `window` milliseconds. */
export type BodyPace = { bytes: number; window: number }

type Mark = { at: number; read: number }

/** Looks every `interval` milliseconds. @param cut gets the request that is too slow, once. */
export function watchBodies(
  { bytes, window }: BodyPace,
  { interval, cut }: { interval: number; cut: (request: IncomingMessage) => void },
) {
  const coming = new Map<IncomingMessage, Mark>()
  const markOf = ({ socket }: IncomingMessage): Mark => ({ at: performance.now(), read: socket.bytesRead })
  const look = (): void => {
    for (const [request, mark] of coming) {
      if (request.complete || request.destroyed) coming.delete(request)
      else if (performance.now() - mark.at < window) continue
      else if (request.readableLength > 0 || request.socket.bytesRead - mark.read >= bytes) {
        coming.set(request, markOf(request))
      } else {
        coming.delete(request)
        cut(request)
      }
    }
  }
  const timer = setInterval(look, interval).unref()
  return {
    /** From its headers on. */
    add(request: IncomingMessage): void {
      if (hasBody(request)) coming.set(request, markOf(request))
    },
    /** Once it has been answered: the rest of its body may still be coming. */
    answered(request: IncomingMessage): void {
      if (request.complete) coming.delete(request)
    },
    end: (): void => clearInterval(timer),
  }
}
