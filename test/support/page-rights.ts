/**
 * Lists the access to each dashboard page, from api/DASHBOARD.md ("Who may do what"), independently of the
 * pages. If a page or its access changes, this list must be changed manually.
 */
import type { Page } from '../../api/dashboard/server/page.ts'

/** Reads lines of a method, a base path and paths below it. `.` is the base itself. */
const listed = (lines: string): string[] =>
  lines
    .trim()
    .split(/\n\s*/)
    .flatMap((line) => {
      const [method, base = '', ...parts] = line.split(' ')
      return parts.map((part) => `${method} ${part === '.' ? base : `${base}/${part}`}`)
    })

/** Every page by its minimum role: method and path after /dashboard. */
export const RIGHTS: Readonly<Record<Page['access'], readonly string[]>> = {
  // Sign-in pages.
  open: listed(`
    GET /login . :secret
    POST /login . :secret
    GET /openid . callback`),
  // Any signed-in user: their own sessions, and a search in their teams.
  person: [
    ...listed('GET  . account find'),
    ...listed('POST  sign-out account/end-others account/sessions/:id/end'),
  ],
  // "viewer: read, and create session tokens, which can't send".
  viewer: listed(`
    GET /teams/:team . settings topics topics/:id domains domains/:name keys keys/:id people integration
    GET /teams/:team/emails . :id
    GET /teams/:team/emails/:id content preview preview-with-pictures files/:place
    GET /teams/:team/broadcasts . :id
    GET /teams/:team/broadcasts/:id people people.csv skips skips.csv preview
    GET /teams/:team emails.csv contacts.csv whatsapp.csv suppressions.csv
    GET /teams/:team contacts contacts/:email suppressions whatsapp-opt-outs
    GET /teams/:team whatsapp whatsapp/:id whatsapp/:id/content whatsapp-templates whatsapp-templates/:id
    GET /teams/:team/templates . :id :id/preview :id/changes
    GET /teams/:team/templates/:id/versions :older_id/:newer_id :version_id/preview
    GET /teams/:team/webhooks . events :id :id/messages
    GET /teams/:team/webhooks/:id/events/:event_id . content
    GET /teams/:team/integration recipients tokens log
    POST /teams/:team/integration tokens tokens/:id/revoke`),
  // "editor: also change templates of both channels, topics, contacts, suppressions, WhatsApp opt-outs and
  // broadcasts, see and stop background jobs, send messages again, cancel and move scheduled messages, send copies and
  // tests".
  editor: listed(`
    GET /teams/:team emails/all background-jobs background-jobs/:id
    POST /teams/:team background-jobs/:id/stop
    POST /teams/:team emails/requeue emails/all/requeue integration/test-email
    POST /teams/:team/emails/:id requeue cancel move copy resend
    GET /teams/:team/broadcasts new :id/again :id/edit
    POST /teams/:team/broadcasts new
    POST /teams/:team/broadcasts/:id edit delete send duplicate unschedule pause resume cancel again test
    POST /teams/:team/contacts . columns import :email
    POST /teams/:team/contacts/:email unsubscribe resubscribe lift delete
    GET /teams/:team/contacts import import/example.csv imports/:id imports/:id/refused.csv imports/:id/check
    POST /teams/:team/contacts/imports/:id . start discard
    GET /teams/:team/suppressions import import/example.csv
    POST /teams/:team/suppressions . import lift
    POST /teams/:team/whatsapp/:id requeue cancel move
    POST /teams/:team whatsapp-opt-outs whatsapp-opt-outs/opt-in
    POST /teams/:team/whatsapp-templates . sync available
    POST /teams/:team/topics . :id/rename :id/delete
    POST /teams/:team/templates . :id/rename :id/duplicate :id/delete :id/restore :id/test
    POST /teams/:team/templates/:id draft preview publish discard list-unsubscribe`),
  // "owner: also manage keys, domains, webhooks, members and settings, resume broadcasts and batches that
  // were paused for bounces or complaints, delete emails, export and erase a contact's personal data, read
  // the audit log".
  owner: listed(`
    GET /teams/:team audit audit.csv people/:id
    POST /teams/:team settings resume-bulk
    POST /teams/:team/emails delete all/delete :id/delete
    POST /teams/:team/contacts/:email export erase
    POST /teams/:team/domains .
    POST /teams/:team/domains/:name verify rekey ramp return-path ed25519 delete
    POST /teams/:team/keys . :id/rotate :id/revoke
    POST /teams/:team/people .
    POST /teams/:team/people/:id role link end-sessions remove
    POST /teams/:team/webhooks . :id/events/:event_id/requeue
    POST /teams/:team/webhooks/:id set test enable disable replay rotate remove`),
  // "operator: everything an owner may, in every team, and the operator's pages".
  operator: listed(`
    GET /operator . health plans audit audit.csv senders background-jobs background-jobs/:id
    GET /operator queues queues/:queue numbers numbers/:name reports reports/:report_id teams teams/:id
    POST /operator plans health/check senders/resume reports/replay reports/drop background-jobs/:id/stop
    POST /operator/queues restored :queue/pause :queue/resume :queue/redrive
    POST /operator/numbers . :name/set :name/check :name/pause :name/resume :name/remove
    POST /operator/teams . :id/plan :id/suspend :id/resume :id/resume-bulk :id/number`),
}

/** Returns the documented access of a page. Undefined if it isn't listed. */
export const rightOf = ({ method, path }: Pick<Page, 'method' | 'path'>): Page['access'] | undefined =>
  (Object.keys(RIGHTS) as Page['access'][]).find((access) => RIGHTS[access].includes(`${method} ${path}`))
