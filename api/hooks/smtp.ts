/**
 * POST /hooks/smtp: raw delivery status notifications and feedback reports from a mail server of ours. The
 * bearer token SMTP_REPORT_TOKEN is checked before the body is read. Without that setting all posts return
 * 401. Reports are committed before the response.
 *
 * Mail without a signed reference can't change anything. It is counted and dropped, so that no one can fill
 * the database through the bounce domain. Mail to fbl@, postmaster@ and abuse@ is stored until a worker has
 * read it.
 */

import { contentKey } from '../../db/delivery/reports/store.ts'
import { RequestError } from '../../db/errors.ts'
import { readEnvelope, serviceAddress } from '../../db/messages/emails/report-envelope.ts'
import { carriesReference } from '../../db/messages/emails/return-path.ts'
import { bearerToken, type SettingsOf } from '../../db/process/config.ts'
import { assertBearer } from '../http/auth.ts'
import { publicRoutes } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import type { DeclaredHook, HookDeps } from './hook.ts'
import { takeReport } from './receive.ts'

const settings = {
  /** The bearer token with which a mail server posts its reports. Without it POST /hooks/smtp rejects all posts. */
  SMTP_REPORT_TOKEN: bearerToken,
}

const open = ({ SMTP_REPORT_TOKEN: token }: SettingsOf<typeof settings>) => ({
  smtp_report_token: token ?? null,
})

const publicRoute = publicRoutes<HookDeps<ReturnType<typeof open>>>()

const routes = [
  publicRoute({
    method: 'POST',
    path: '/hooks/smtp',
    readsAuthenticated: true,
    async handle({ bytes, headers, now }, deps) {
      assertBearer(headers.authorization, deps.hooks.smtp_report_token)
      const body = await bytes()
      if (body.length === 0) throw new RequestError('bad_request', TEXTS.noBody)
      if (serviceAddress(readEnvelope(body)) === null && !carriesReference(deps.secrets, body)) {
        deps.metrics.count('heliograph_reports_total', { provider: 'smtp', outcome: 'ignored' })
        return { status: 200, body: { status: 'dropped' } }
      }
      return takeReport(deps, { provider: 'smtp', event_key: contentKey(body), body, received_at: now })
    },
  }),
]

export const SMTP_HOOK = {
  settings,
  switched_by: 'SMTP_REPORT_TOKEN',
  open,
  routes,
} as const satisfies DeclaredHook
