/**
 * POST /hooks/smtp: delivery status notifications and feedback reports, raw, from a mail server of ours (contract §6).
 * Promises: proved genuine by the bearer SMTP_REPORT_TOKEN before the body is read, or 401; without that setting
 * nothing can be proved, so everything is 401. Taken is committed. Must not look into the report.
 */
import { contentKey } from '../../db/reports/store.ts'
import { assertBearer } from '../auth.ts'
import { readRawBody } from '../input.ts'
import { type PublicRoute, publicRoute } from '../route.ts'
import { takeReport } from './take.ts'

export const smtpHookRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'POST',
    path: '/hooks/smtp',
    access: 'public',
    async handle({ raw, headers, now }, deps) {
      assertBearer(headers.authorization, deps.hooks.smtp_report_token)
      const body = await readRawBody(raw)
      return takeReport(deps, { provider: 'smtp', event_key: contentKey(body), body }, now)
    },
  }),
]
