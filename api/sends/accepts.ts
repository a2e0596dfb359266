/**
 * Accepts single sends, and the reports that hooks have proved genuine. Those that arrive while a transaction is under
 * way share the next one, whatever their team.
 * Promises: each keeps its own outcome or refusal, and is answered only after the commit. A team whose account is
 * locked by somebody else holds up only itself; a report that cannot be stored, none but itself.
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

/** One call at a time for each, as the handlers see it. */
export type Accepts = {
  email: Batcher<EmailCall, EmailOutcome[]>
  whatsapp: Batcher<WhatsappCall, WhatsappOutcome[]>
  report: Batcher<TakenReport, ReportOutcome>
}

/** Errors that are not tried again: after a lost connection nobody knows whether the batch was stored. */
const isSafe = (error: unknown): boolean => !isDatabaseUnavailable(error) || isLockTimeout(error)

const lengthOf = (text: string | null): number => text?.length ?? 0

type AcceptsDeps = { database: Database; queue: Producer; versions: Versions; links: UnsubscribeLinks | null }

/** @param database the whole one: a batch belongs to many teams, so it takes no team's turn. */
export const createAccepts = ({ database, queue, versions, links }: AcceptsDeps): Accepts => ({
  email: createBatcher({
    work: (calls, alone) =>
      database.transaction((tx) =>
        acceptEmailCalls({ tx, queue, versions, links }, calls, alone ? 'wait' : 'skip'),
      ),
    keyOf: ({ sender }) => sender.team_id,
    weightOf: ({ items }) =>
      items.reduce((sum, { html, text }) => sum + 1_000 + lengthOf(html) + lengthOf(text), 0),
    isSafe,
  }),
  whatsapp: createBatcher({
    work: (calls, alone) =>
      database.transaction((tx) => acceptWhatsappCalls({ tx, queue }, calls, alone ? 'wait' : 'skip')),
    keyOf: ({ team_id }) => team_id,
    weightOf: ({ items }) => items.reduce((sum, { to }) => sum + 1_000 * to.length, 0),
    isSafe,
  }),
  report: createBatcher({
    work: (reports) => database.transaction((tx) => storeReports({ tx, queue }, reports)),
    // A repeat that comes while the first is being stored waits for it here, not in PostgreSQL. A batch has each token
    // once.
    keyOf: ({ provider, event_key, token }) => token?.digest ?? `${provider}/${event_key}`,
    weightOf: ({ body }) => 1_000 + body.length,
    isSafe,
  }),
})
