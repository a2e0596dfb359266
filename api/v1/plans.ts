/** GET /v1/plans: the public catalog of plans. */
import { object } from 'yup'
import { LOCALES, type Locale } from '../../db/accounts/plans/plans.sql.ts'
import { text } from '../../db/validation/fields.ts'
import { etagOf, isKnown } from '../http/etag.ts'
import { defineQuery } from '../http/input.ts'
import { ABOUT } from './about.ts'
import { publicRoute, type V1Route } from './deps.ts'
import { presentCatalog } from './present.ts'

/** Caches may keep it as long as our own copy is valid, so that changes are visible within about a minute. */
const cacheControl = (left: number): string => `public, max-age=${Math.floor(left / 1_000)}`

const findLocale = (asked: string | undefined): Locale => LOCALES.find((locale) => locale === asked) ?? 'en'

const catalogSchema = object({ locale: text() })

export const planRoutes: readonly V1Route[] = [
  publicRoute({
    method: 'GET',
    path: '/v1/plans',
    about: ABOUT.listPlans,
    access: 'public',
    query: defineQuery(catalogSchema),
    async handle({ query, headers, now }, { database, catalog }) {
      const { plans, left } = await catalog(database, now)
      const body = JSON.stringify(presentCatalog(plans, findLocale(query.locale)))
      const caching = { ETag: etagOf(body), 'Cache-Control': cacheControl(left) }
      if (isKnown(headers, caching.ETag)) return { status: 304, headers: caching }
      return { status: 200, body, headers: { ...caching, 'Content-Type': 'application/json; charset=utf-8' } }
    },
  }),
]
