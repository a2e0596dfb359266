/**
 * Group commit for single sends and verified reports: those that arrive while a transaction is running share
 * the next one, across teams. Each caller gets its own result or error, after the commit. A team whose
 * account is locked only delays itself. A report that can't be stored only fails itself.
 */

import type { Versions } from '../../db/content/templates/versions.ts'
import { type ReportOutcome, storeReports, type TakenReport } from '../../db/delivery/reports/store.ts'
import { acceptEmailCalls, type EmailOutcome } from '../../db/messages/emails/accept.ts'
import type { EmailCall } from '../../db/messages/emails/call.ts'
import type { UnsubscribeLinks } from '../../db/messages/emails/unsubscribe-token.ts'
import {
  acceptWhatsappCalls,
  type WhatsappCall,
  type WhatsappOutcome,
} from '../../db/messages/whatsapp/accept.ts'
import type { Database } from '../../db/postgres/pool.ts'
import { isDatabaseUnavailable, isLockTimeout } from '../../db/postgres/pool.ts'
import type { Producer } from '../../db/queue/producer.ts'
import { type Batcher, createBatcher } from '../http/batcher.ts'

/** The functions that handlers call, with one call each. */
export type Accepts = {
  email: Batcher<EmailCall, EmailOutcome[]>
  whatsapp: Batcher<WhatsappCall, WhatsappOutcome[]>
  report: Batcher<TakenReport, ReportOutcome>
}

/** True if a failed batch can be repeated. After a lost connection it is unknown whether it was committed. */
const isSafe = (error: unknown): boolean => !isDatabaseUnavailable(error) || isLockTimeout(error)

const getLength = (text: string | null): number => text?.length ?? 0

type AcceptsDeps = { database: Database; queue: Producer; versions: Versions; links: UnsubscribeLinks | null }

/** @param database isn't limited to a team, because a batch contains calls of many teams */
export const createAccepts = ({ database, queue, versions, links }: AcceptsDeps): Accepts => ({
  email: createBatcher({
    work: (calls, alone) =>
      database.transaction((tx) =>
        acceptEmailCalls({ tx, queue, versions, links, last: true }, calls, alone ? 'wait' : 'skip'),
      ),
    keyOf: ({ sender }) => sender.team_id,
    weightOf: ({ items }) =>
      items.reduce((sum, { html, text }) => sum + 1_000 + getLength(html) + getLength(text), 0),
    isSafe,
  }),
  whatsapp: createBatcher({
    work: (calls, alone) =>
      database.transaction((tx) =>
        acceptWhatsappCalls({ tx, queue, last: true }, calls, alone ? 'wait' : 'skip'),
      ),
    keyOf: ({ team_id }) => team_id,
    weightOf: ({ items }) => items.reduce((sum, { to }) => sum + 1_000 * to.length, 0),
    isSafe,
  }),
  report: createBatcher({
    work: (reports) => database.transaction((tx) => storeReports({ tx, queue }, reports)),
    // A repeat waits here while the first one is being stored, not in PostgreSQL. A batch contains each token
    // once.
    keyOf: ({ provider, event_key, token }) => token?.digest ?? `${provider}/${event_key}`,
    weightOf: ({ body }) => 1_000 + body.length,
    isSafe,
  }),
})
