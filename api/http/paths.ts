/**
 * Which of the declared paths a request's path fits: of the API's routes, and of the dashboard's pages.
 * Promises: a path fits exactly, letter by letter; those that fit come in the order of their list; parameters are
 * decoded strictly, where the router's own decoding lets malformed ones pass as they are. Must not refuse anything:
 * what an unknown path or another method is answered with is the caller's.
 */
import Router from '@koa/router'

type Declared = { method: string; path: string }

export type Fit<R> = {
  route: R
  /** What it takes: HEAD with GET. */
  methods: readonly string[]
  isLiteral: boolean
  /** Null when one of them is no percent-encoded UTF-8, or has a NUL character. */
  params: Readonly<Record<string, string>> | null
}

/** Makes the matcher of a list. @param base what stands before each of its paths. */
export function createPaths<R extends Declared>(routes: readonly R[], base = ''): (path: string) => Fit<R>[] {
  const router = new Router({ sensitive: true, strict: true })
  const served = new Map(
    routes.map((route) => {
      router.register(base + route.path, [route.method], () => {})
      return [router.stack.at(-1), route]
    }),
  )
  return (path) =>
    router.match(path, '').path.flatMap((layer): Fit<R>[] => {
      const route = served.get(layer)
      if (!route) return []
      const { methods, paramNames } = layer
      const names = paramNames.map(({ name }) => name)
      const params = decoded(names, layer.captures(path))
      return [{ route, methods, isLiteral: names.length === 0, params }]
    })
}

function decoded(names: readonly string[], captures: readonly string[]): Record<string, string> | null {
  try {
    const values = names.map((name, at) => [name, decodeURIComponent(captures[at] ?? '')] as const)
    return values.some(([, value]) => value.includes('\0')) ? null : Object.fromEntries(values)
  } catch {
    return null
  }
}
