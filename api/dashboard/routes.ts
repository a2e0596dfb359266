/** Every page of the dashboard. A page that is not in this list is not served. */
import type { Page } from './page.ts'
import { accountPages } from './pages/account.ts'
import { emailPages } from './pages/email.ts'
import { emailsPages } from './pages/emails.ts'
import { importPages } from './pages/import.ts'
import { loginPages } from './pages/login.ts'
import { auditPages } from './pages/operator/audit.ts'
import { healthPages } from './pages/operator/health.ts'
import { planPages } from './pages/operator/plans.ts'
import { reportPages } from './pages/operator/reports.ts'
import { teamPages } from './pages/operator/teams.ts'
import { overviewPages } from './pages/overview.ts'

export const PAGES: readonly Page[] = [
  ...loginPages,
  ...accountPages,
  ...overviewPages,
  ...emailsPages,
  ...emailPages,
  ...importPages,
  ...healthPages,
  ...reportPages,
  ...teamPages,
  ...planPages,
  ...auditPages,
]
