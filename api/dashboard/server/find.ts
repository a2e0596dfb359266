/** Finds the page of a path. Parameters named `team` or `…id` only match UUIDs. */
import { match } from 'path-to-regexp'
import { isUuid } from '../../../db/validation/strings.ts'
import { allowedMethods, type Params } from '../../http/route.ts'
import type { Page } from './page.ts'

/** Maximum number of path segments. No page has as many. */
const MAX_PATH_PARTS = 20

export type Found = { page: Page; params: Params; path: string }

export type OtherMethod = { allowed: readonly string[] }

export type Finder = {
  /** @param path after /dashboard. @returns only the allowed methods for another method, null for an unknown path. */
  page(method: string, path: string): Found | OtherMethod | null
  /**
   * Returns the page that contains the forms for this path: its GET page, otherwise the nearest one above it.
   * The form's route must start with the page's, so that `contacts/columns` isn't on the page of a contact.
   */
  above(path: string): Found | null
}

const isReadable = ([name, value]: [string, string]): boolean =>
  name === 'team' || name.endsWith('id') ? isUuid(value) : !value.includes('\0')

/** Returns the parameters of a matching path, or null if it doesn't match or isn't percent-encoded UTF-8. */
function readParams(fit: ReturnType<typeof match<Record<string, string>>>, path: string): Params | null {
  try {
    const found = fit(path)
    return found && Object.entries(found.params).every(isReadable) ? found.params : null
  } catch {
    return null
  }
}

export function createFinder(pages: readonly Page[]): Finder {
  const fits = pages.map((page) => ({
    page,
    methods: allowedMethods(page.method),
    fit: match<Record<string, string>>(page.path, { sensitive: true, trailing: false }),
  }))
  const finder: Finder = {
    page(method, path) {
      const fitting = fits.flatMap(({ page, methods, fit }) => {
        const params = readParams(fit, path)
        return params ? [{ page, methods, params, path }] : []
      })
      const found = fitting.find(({ methods }) => methods.includes(method))
      if (found || fitting.length === 0) return found ?? null
      return { allowed: [...new Set(fitting.flatMap(({ methods }) => methods))] }
    },
    above(path) {
      if (path.split('/', MAX_PATH_PARTS + 1).length > MAX_PATH_PARTS) return null
      const sent = finder.page('POST', path)
      const of = sent && 'page' in sent ? sent.page.path : null
      for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
        const found = finder.page('GET', at)
        if (found && 'page' in found && (of === null || of.startsWith(found.page.path))) return found
      }
      return null
    },
  }
  return finder
}
