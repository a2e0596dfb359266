/** Shows an email to an operator, with its timeline and, while it waits, its next attempt. Read-only. */

import { requireTeam } from '../../accounts/teams/view.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import type { Versions } from '../../content/templates/versions.ts'
import { deliveryState } from '../../delivery/requeue.sql.ts'
import { describeWaiting } from '../../delivery/waiting.ts'
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { PlainTexts } from '../../process/plain-texts.ts'
import type { Secrets } from '../../process/secrets.ts'
import { TEXTS } from '../texts.ts'
import { sentContent } from './content.ts'
import { type EmailRow, emailById } from './emails.sql.ts'
import { eventsOfEmail } from './events.sql.ts'
import { present } from './recipients.ts'
import { unsubscribeUrl } from './unsubscribe-token.ts'
import { emailView } from './view.ts'

type Deps = { tx: Tx; versions: Versions; secrets: Secrets }

/** `publicUrl`: the address of the service for recipients, or undefined. */
type ShowDeps = Deps & { now: Date; publicUrl: string | undefined }

export type ShownEmail = Awaited<ReturnType<typeof showEmail>>

export async function loadVersions({ tx, versions }: Deps, rows: readonly EmailRow[]) {
  const refs = rows.flatMap(({ team_id, template_version_id: id }) => (id === null ? [] : [{ team_id, id }]))
  const compiled = await versions(tx, refs)
  return (row: EmailRow) => compiled.get(row.template_version_id ?? '')
}

async function requireEmail(tx: Tx, teamId: string, id: string): Promise<EmailRow> {
  await requireTeam(tx, teamId)
  const row = await emailById(tx, teamId, id)
  if (!row) throw requestError('not_found', TEXTS.noEmail, { id })
  return row
}

const toUrl = (publicUrl: string | undefined, token: string | null): string | null =>
  publicUrl === undefined || token === null ? null : unsubscribeUrl(publicUrl, token)

/** Returns an email, and the state for the actions on its page. @throws RequestError not_found. */
export async function emailWithState(deps: ShowDeps, teamId: string, id: string) {
  const row = await requireEmail(deps.tx, teamId, id)
  const version = (await loadVersions(deps, [row]))(row)
  const view = emailView(row, version, deps.secrets)
  const events = await eventsOfEmail(deps.tx, teamId, id)
  const state = await deliveryState(deps.tx, EMAIL, { team_id: teamId, id })
  const waiting = await describeWaiting(deps.tx, { id, state, now: deps.now }, events)
  const recipients = [...(row.pending_recipients ?? present(row.to_emails))]
  const email = {
    ...view,
    /** Null without a token or the public URL. */
    unsubscribe_url: toUrl(deps.publicUrl, view.unsubscribe_token),
    /** The X-Request-Id of the call that sent it, if any. */
    http_request_id: row.http_request_id,
    // Only the recipient may see a sign-in link or a notice.
    ...(row.internal ? { internal: true as const } : {}),
    events: events.map(({ occurred_at: time, ...event }) => ({ time, ...event })),
    // Absent if nothing is left to deliver.
    ...(waiting === null ? {} : { waiting: { ...waiting, recipients } }),
  }
  /** Returns the parts that are sent. @throws Error if they were purged. */
  const sent = async (texts: PlainTexts) => sentContent(row, version, texts)
  return { email, state, sent }
}

/** @throws RequestError not_found. */
export const showEmail = async (...args: Parameters<typeof emailWithState>) =>
  (await emailWithState(...args)).email
