/** Finds the page of a path, as the API finds its routes: but a parameter called `team` or `…id` is a UUID. */
import { isUuid } from '../../../db/text/strings.ts'
import { createPaths } from '../../http/paths.ts'
import { BASE } from '../drawn/base.ts'
import type { Page } from './page.ts'

/** More parts than any page's path has. */
const DEEPEST = 20

export type Found = { page: Page; params: Readonly<Record<string, string>>; path: string }

export type Finder = {
  /** @param path after /dashboard. @returns `other method` where the path is known, but not for this method. */
  page(method: string, path: string): Found | 'other method' | null
  /** The GET page of this path, else the nearest above it: where the fault of a form is shown. */
  above(path: string): Found | null
}

const areIds = (params: Found['params']): boolean =>
  Object.entries(params).every(([name, value]) => (name !== 'team' && !name.endsWith('id')) || isUuid(value))

/** Makes a finder over these pages. */
export function createFinder(pages: readonly Page[]): Finder {
  const fitting = createPaths(pages, BASE)
  const finder: Finder = {
    page(method, path) {
      const fits = fitting(BASE + path).flatMap(({ route: page, methods, params }) =>
        params && areIds(params) ? [{ page, methods, params, path }] : [],
      )
      const found = fits.find(({ methods }) => methods.includes(method))
      return found ?? (fits.length > 0 ? 'other method' : null)
    },
    above(path) {
      if (path.split('/', DEEPEST + 1).length > DEEPEST) return null
      for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        const found = finder.page('GET', at)
        if (found && found !== 'other method') return found
      }
      return null
    },
  }
  return finder
}
