/** Every page of the dashboard. A page that is not in this list is not served. */
import type { Page } from './page.ts'
import { accountPages } from './pages/account.ts'
import { loginPages } from './pages/login.ts'
import { overviewPages } from './pages/overview.ts'

export const PAGES: readonly Page[] = [...loginPages, ...accountPages, ...overviewPages]
