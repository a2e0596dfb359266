/** The path that a caller may have meant, for the message of a 404. Pure. Must not repeat what was asked for. */
import { distance } from '../../db/text/distance.ts'

/** How many letters may differ. */
const FURTHEST = 3
const LONGEST_PATH = 100

/** The path with the route's parameters in place of whatever stands there. */
function likened(path: string, route: string): string {
  const parts = path.split('/')
  return route
    .split('/')
    .map((part, at) => (part.startsWith(':') && parts[at] ? part : (parts[at] ?? '')))
    .concat(parts.slice(route.split('/').length))
    .join('/')
}

/** The route's path nearest to what was asked for; null when none is near. */
export function nearestPath(asked: string, routes: readonly string[]): string | null {
  if (asked.length > LONGEST_PATH) return null
  const bare = asked
    .toLowerCase()
    .replace(/\/{2,}/g, '/')
    .replace(/\/$/, '')
  const versioned = bare.startsWith('/v1') ? bare : `/v1${bare}`
  const ranked = routes
    .flatMap((route) =>
      [bare, versioned].map((path) => ({ route, away: distance(likened(path, route), route) })),
    )
    .toSorted((one, other) => one.away - other.away)
  const [best] = ranked
  return best && best.away <= FURTHEST ? best.route : null
}
