/** Lists the pages of the dashboard. Only these are served. */

import { accountPages } from './pages/account.ts'
import { apiLogPages } from './pages/api-log.ts'
import { backgroundJobPages } from './pages/background-jobs.ts'
import { broadcastPages } from './pages/broadcast.ts'
import { broadcastPeoplePages } from './pages/broadcast-recipients.ts'
import { broadcastsPages } from './pages/broadcasts.ts'
import { contactPages } from './pages/contact.ts'
import { contactsPages } from './pages/contacts.ts'
import { domainsPages } from './pages/domains.ts'
import { emailPages } from './pages/email.ts'
import { emailsPages } from './pages/emails.ts'
import { emailsBulkPages } from './pages/emails-bulk.ts'
import { importPages } from './pages/import.ts'
import { integrationPages } from './pages/integration.ts'
import { keysPages } from './pages/keys.ts'
import { locatePages } from './pages/locate.ts'
import { loginPages } from './pages/login.ts'
import { peoplePages } from './pages/members.ts'
import { auditPages } from './pages/operator/audit.ts'
import { healthPages } from './pages/operator/health.ts'
import { operatorOverviewPages } from './pages/operator/overview.ts'
import { planPages } from './pages/operator/plans.ts'
import { queuePages } from './pages/operator/queue.ts'
import { queuesPages } from './pages/operator/queues.ts'
import { reportPages } from './pages/operator/reports.ts'
import { senderPages } from './pages/operator/senders.ts'
import { teamPages } from './pages/operator/team.ts'
import { teamsPages } from './pages/operator/teams.ts'
import { numberPages } from './pages/operator/whatsapp-numbers.ts'
import { overviewPages } from './pages/overview.ts'
import { sessionTokenPages } from './pages/session-tokens.ts'
import { settingsPages } from './pages/settings.ts'
import { suppressionPages } from './pages/suppressions.ts'
import { templatePages } from './pages/template.ts'
import { templatesPages } from './pages/templates.ts'
import { topicsPages } from './pages/topics.ts'
import { webhookActs } from './pages/webhooks/actions.ts'
import { webhookListPages } from './pages/webhooks/list.ts'
import { webhookMessagePages } from './pages/webhooks/messages.ts'
import { webhookPages } from './pages/webhooks/one.ts'
import { loadProblems, whatsappPages } from './pages/whatsapp.ts'
import { whatsappMessagePages } from './pages/whatsapp-message.ts'
import { whatsappOptOutPages } from './pages/whatsapp-opt-outs.ts'
import { whatsappTemplatePages } from './pages/whatsapp-templates.ts'
import type { Page } from './server/page.ts'

export const PAGES: readonly Page[] = [
  ...loginPages,
  ...accountPages,
  ...locatePages({ whatsapp: loadProblems }),
  ...overviewPages,
  ...emailsPages,
  ...emailsBulkPages,
  ...emailPages,
  ...broadcastsPages,
  ...broadcastPages,
  ...broadcastPeoplePages,
  ...contactsPages,
  // Comes before contactPages, which would match `import` as an address.
  ...importPages,
  ...whatsappPages,
  ...whatsappMessagePages,
  ...whatsappOptOutPages,
  ...whatsappTemplatePages,
  ...contactPages,
  ...suppressionPages,
  ...settingsPages,
  ...topicsPages,
  ...backgroundJobPages,
  ...templatesPages,
  ...templatePages,
  ...domainsPages,
  ...keysPages,
  ...peoplePages,
  ...webhookListPages,
  ...webhookPages,
  ...webhookMessagePages,
  ...webhookActs,
  ...integrationPages,
  ...sessionTokenPages,
  ...apiLogPages,
  ...operatorOverviewPages,
  ...healthPages,
  ...queuesPages,
  ...queuePages,
  ...senderPages,
  ...numberPages,
  ...reportPages,
  ...teamsPages,
  ...teamPages,
  ...planPages,
  ...auditPages,
]
