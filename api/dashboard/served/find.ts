/** Finds the page of a path: parameters are decoded strictly, and one called `team` or `…id` is a UUID. */
import { isUuid } from '../../../db/text/strings.ts'
import type { Page } from './page.ts'

export type Found = { page: Page; params: Record<string, string>; path: string }

export type Finder = {
  /** @param path after /dashboard. @returns `other method` where the path is known, but not for this method. */
  page(method: string, path: string): Found | 'other method' | null
  /** The GET page of this path, else the nearest above it: where the fault of a form is shown. */
  above(path: string): Found | null
}

const fits = (name: string, value: string): boolean =>
  name === 'team' || name.endsWith('id') ? isUuid(value) : !value.includes('\0')

/** A path's parameters; null when it is not the pattern's. */
function paramsOf(pattern: RegExp, path: string): Record<string, string> | null {
  const match = pattern.exec(path)
  if (!match) return null
  try {
    const params = Object.entries(match.groups ?? {}).map(
      ([name, value]) => [name, decodeURIComponent(value)] as const,
    )
    return params.every(([name, value]) => fits(name, value)) ? Object.fromEntries(params) : null
  } catch {
    return null
  }
}

/** Makes a finder over these pages. */
export function createFinder(pages: readonly Page[]): Finder {
  const patterns = pages.map((page) => ({
    page,
    pattern: new RegExp(`^${page.path.replace('.', '\\.').replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`),
  }))
  const finder: Finder = {
    page(asked, path) {
      const method = asked === 'HEAD' ? 'GET' : asked
      let known = false
      for (const { page, pattern } of patterns) {
        const params = paramsOf(pattern, path)
        if (params && page.method === method) return { page, params, path }
        if (params) known = true
      }
      return known ? 'other method' : null
    },
    above(path) {
      for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        const found = finder.page('GET', at)
        if (found && found !== 'other method') return found
      }
      return null
    },
  }
  return finder
}
