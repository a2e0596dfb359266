/**
 * POST /v1/whatsapp/messages and /batch: template messages. This module does the checks that need only the
 * body. db/messages/whatsapp/accept.ts does the rest, for one item or a hundred.
 */
import {
  acceptWhatsapp,
  type WhatsappCall,
  type WhatsappItem,
  type WhatsappOutcome,
} from '../../db/messages/whatsapp/accept.ts'
import { messagesOfRequest, type SentRow } from '../../db/messages/whatsapp/messages.sql.ts'
import { shownTimes } from '../../db/validation/moments.ts'
import { keyOnly, keyOrSession, type Principal } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { countSends } from '../sends/count.ts'
import { aboutScheduled } from './about.ts'
import { ABOUT_WHATSAPP } from './about-whatsapp.ts'
import { acceptEach, type BatchItem, batchAnswer } from './batch.ts'
import { teamRoute, type V1Deps, type V1Route } from './deps.ts'
import { withIdempotencyKey } from './idempotency-key.ts'
import { scheduledRoutes } from './scheduled.ts'
import { buildItem, messageBody, messagesBody } from './whatsapp-body.ts'

const presentMessages = (rows: readonly SentRow[]) => ({
  data: rows.map(({ id, recipient, status, ...times }) => ({
    ...{ id, to: recipient, status },
    ...shownTimes(times),
  })),
})

async function acceptBatch({ database, queue, metrics }: V1Deps, call: WhatsappCall) {
  const outcomes = await database.transaction((tx) => acceptWhatsapp({ tx, queue, last: true }, call))
  return countSends(metrics, 'whatsapp', outcomes)
}

async function loadRows({ database }: V1Deps, { team_id }: Principal, outcome: WhatsappOutcome) {
  if (outcome.kind === 'refused') throw outcome.refusal
  if (outcome.kind === 'stored') return outcome.rows
  return messagesOfRequest(database, team_id, outcome.request_id)
}

const toBatchItem = (outcome: WhatsappOutcome): BatchItem =>
  outcome.kind === 'refused' ? outcome.refusal : outcome.first_id

export const whatsappRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/whatsapp/messages',
    about: ABOUT_WHATSAPP.sendWhatsapp,
    access: keyOrSession('whatsapp:send'),
    body: messageBody,
    async handle({ id, body, headers, principal }, deps) {
      const { team_id } = principal
      const items = [buildItem(withIdempotencyKey(body, headers))]
      const outcomes = await deps.accepts.whatsapp({ team_id, items, http_request_id: id })
      const [outcome] = countSends(deps.metrics, 'whatsapp', outcomes)
      if (!outcome) throw new Error('one item must have one outcome')
      const rows = await loadRows(deps, principal, outcome)
      const trace = tracing(rows.map(({ id }) => id))
      return { status: outcome.kind === 'stored' ? 201 : 200, body: presentMessages(rows), trace }
    },
  }),
  teamRoute({
    method: 'POST',
    path: '/v1/whatsapp/messages/batch',
    about: ABOUT_WHATSAPP.sendWhatsapps,
    access: keyOnly('whatsapp:send'),
    heavy: true,
    body: messagesBody,
    async handle({ id, body, principal: { team_id } }, deps) {
      const accept = (items: readonly WhatsappItem[]) =>
        acceptBatch(deps, { team_id, items, http_request_id: id, batch: true })
      const items = await acceptEach(body, accept, toBatchItem)
      return batchAnswer(items, deps.metrics)
    },
  }),
  ...scheduledRoutes({
    channel: 'whatsapp',
    path: '/v1/whatsapp/messages',
    access: keyOrSession('whatsapp:send'),
    about: aboutScheduled({ name: 'Whatsapp', group: 'WhatsApp', noun: 'message', article: 'a' }, [
      'not_found',
    ]),
  }),
]
