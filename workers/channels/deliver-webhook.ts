/**
 * Reads, signs, sends and records webhooks. Each endpoint is a separate sender. Every attempt sends the same bytes.
 * While an endpoint requests a wait, no attempt counts. A rejection by one server doesn't count against another URL.
 * A disabled endpoint receives nothing.
 */
import type { KeyObject } from 'node:crypto'
import type { DeliveryRef } from '../../db/channels/channel.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from '../../db/channels/webhook.sql.ts'
import { stopNotifying } from '../../db/messages/webhooks/endpoints.ts'
import { BODY_REJECTED_STATUSES, DISABLE_AFTER_MS, GONE_STATUS } from '../../db/messages/webhooks/ends.ts'
import {
  type EndpointResult,
  failSilenced,
  lockUnchangedWebhooks,
  type OutgoingWebhook,
  type Round,
  storeRound,
  type WebhookAttempt,
  webhooksToDeliver,
} from '../../db/messages/webhooks/messages.sql.ts'
import { signedHeaders, signingKey } from '../../db/messages/webhooks/secret.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import { idAt, idNow } from '../../db/process/ids.ts'
import type { Log } from '../../db/process/log.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { Producer } from '../../db/queue/producer.ts'
import { storableText } from '../../db/validation/words.ts'
import type { Delivered, DeliveryChannel, Outgoing } from '../delivery/channel.ts'
import type { AttemptHistory, AttemptOutcome, VerdictContext } from '../delivery/retry-policy.ts'
import { type Connections, createConnections } from '../providers/webhook/connections.ts'
import { postWebhook, type WebhookAnswer, type WebhookDelivery } from '../providers/webhook/post.ts'

export type WebhookDeps = {
  database: Database
  queue: Pick<Producer, 'enqueue'>
  secrets: Secrets
  webhooks: WebhookDelivery
  log: Log
  clock: () => Date
}

type Attempt = { row: OutgoingWebhook; answer: WebhookAnswer }

/** The number of requests at once per endpoint and process. */
const MAX_AT_ONCE = 4
const MAX_PER_SECOND = 1_000
const MAX_BODY_REFUSALS = 3

export function webhookChannel(deps: WebhookDeps): DeliveryChannel<'deliver-webhook', Attempt> {
  const { database } = deps
  const connections = createConnections()
  return {
    channel: WEBHOOK,
    unknown_wait: 0,
    senders: { prefix: WEBHOOK_SENDERS },
    async read(jobs) {
      const refs = jobs.map(({ data }): DeliveryRef => ({ team_id: data.team_id, id: data.message_id }))
      const rows = new Map((await webhooksToDeliver(database, refs)).map((row) => [row.id, row]))
      const missing = refs.filter(({ id }) => !rows.has(id))
      if (missing.length > 0) await failSilenced(database, missing)
      const keysOf = openedOnce(deps.secrets)
      return new Map(
        jobs.flatMap((job) => {
          const row = rows.get(job.data.message_id)
          return row ? [[job, toOutgoing(row, { ...deps, keysOf, connections })]] : []
        }),
      )
    },
    judge: (attempt) => attempt,
    outcomesOf: ({ answer }) => [webhookOutcome(answer)],
    verdict: (attempt, history, context) =>
      webhookVerdict(attempt, history, { ...context, ...deps.webhooks }),
    outdated,
    record: (tx, delivered) => record(tx, delivered, deps),
  }
}

/** Finds failed attempts whose message or endpoint is deleted, or whose endpoint has a new URL. */
async function outdated(tx: Tx, attempts: readonly Attempt[]): Promise<ReadonlySet<Attempt>> {
  const failed = attempts.filter(({ answer }) => !isTaken(answer))
  if (failed.length === 0) return new Set()
  const current = new Set(
    await lockUnchangedWebhooks(
      tx,
      attempts.map(({ row }) => row),
    ),
  )
  return new Set(failed.filter(({ row }) => !current.has(row.id)))
}

function toOutgoing(
  row: OutgoingWebhook,
  { keysOf, clock, webhooks, connections }: WebhookDeps & { keysOf: KeysOf; connections: Connections },
): Outgoing<Attempt> {
  const { team_id, id, endpoint_id, since, tries } = row
  return {
    ref: { team_id, id },
    http_request_id: null,
    since,
    history: { since: null, deferrals: tries, unknowns: 0 },
    held_at: null,
    sender: {
      key: `${WEBHOOK_SENDERS}${endpoint_id}`,
      ceiling: MAX_PER_SECOND,
      on_demand: true,
      at_once: MAX_AT_ONCE,
    },
    cost: 1,
    own_wait_seconds: 0,
    async send(cut) {
      const keys = keysOf(row)
      if (keys === null) return { row, answer: UNSEALED_ANSWER }
      const headers = signedHeaders(keys, row, clock())
      const answer = await postWebhook(
        { url: row.url, headers, body: row.body },
        { ...webhooks, connections },
        cut,
      )
      return { row, answer: { ...answer, response: storableText(answer.response) } }
    },
  }
}

const UNSEALED_ANSWER: WebhookAnswer = {
  status: null,
  ms: 0,
  response: "not sent: the webhook's secret can't be decrypted with SECRET_KEY or SECRET_KEY_PREVIOUS",
  wait_seconds: null,
}

/**
 * Returns the signing keys: the secret, and the previous one while that is valid. Null if they can't be decrypted.
 */
type KeysOf = (row: OutgoingWebhook) => KeyObject[] | null

/** Returns the keys of the endpoints of rows that were read together. Each key is opened at its first use. */
function openedOnce(secrets: Secrets): KeysOf {
  const opened = new Map<string, KeyObject[] | null>()
  return (row) => {
    const known = opened.get(row.endpoint_id)
    if (known !== undefined) return known
    const keys = openedKeys(row, secrets)
    opened.set(row.endpoint_id, keys)
    return keys
  }
}

function openedKeys(row: OutgoingWebhook, secrets: Secrets): KeyObject[] | null {
  const owner = { team_id: row.team_id, id: row.endpoint_id }
  try {
    return [row.secret, row.previous_secret].flatMap((sealed) =>
      sealed === null ? [] : [signingKey(secrets, owner, sealed)],
    )
  } catch {
    return null
  }
}

const isTaken = ({ status }: WebhookAnswer): boolean => status !== null && status >= 200 && status <= 299

const summarize = ({ status, response }: WebhookAnswer): string =>
  status === null ? response : `HTTP ${status}`

function webhookOutcome(answer: WebhookAnswer): AttemptOutcome {
  const detail = summarize(answer)
  if (isTaken(answer)) return { kind: 'accepted', detail }
  if (answer.status === GONE_STATUS) return { kind: 'refused', detail }
  if (answer.wait_seconds === null) return { kind: 'deferred', detail }
  return { kind: 'sender', trouble: 'connection', detail, wait_seconds: answer.wait_seconds }
}

/** Decides how an attempt ends. Webhooks have their own retry delays. */
function webhookVerdict(
  { row, answer }: Attempt,
  { deferrals }: AttemptHistory,
  { spread, pauses }: VerdictContext & Pick<WebhookDelivery, 'pauses'>,
): End {
  const { kind, detail } = webhookOutcome(answer)
  if (kind === 'accepted') return { end: 'completed' }
  // A paused endpoint's messages aren't claimed at all.
  if (kind === 'sender') return { end: 'snoozed', seconds: 1 }
  const refusals = [...row.statuses, answer.status].filter((status) =>
    BODY_REJECTED_STATUSES.includes(status ?? 0),
  ).length
  const pause = pauses[deferrals]
  if (
    kind === 'refused' ||
    pause === undefined ||
    (refusals >= MAX_BODY_REFUSALS && BODY_REJECTED_STATUSES.includes(answer.status ?? 0))
  )
    return { end: 'given_up', reason: detail }
  return { end: 'again', seconds: pause * (0.8 + 0.4 * spread) }
}

function endedBy({ answer: { row }, end }: Delivered<Attempt>): Round['ended'] {
  const { team_id, id } = row
  if (end.end === 'completed') return [{ team_id, id, status: 'delivered' }]
  return end.end === 'given_up' ? [{ team_id, id, status: 'failed' }] : []
}

/**
 * Stores attempts, the states of their messages, and the health of their endpoints. Notifies owners of a disabled
 * one.
 */
async function record(
  tx: Tx,
  delivered: readonly Delivered<Attempt>[],
  { log, queue }: Pick<WebhookDeps, 'log' | 'queue'>,
): Promise<void> {
  const endpoints = await storeRound(tx, {
    news: toResults(delivered),
    attempts: delivered.map(toAttempt),
    ended: delivered.flatMap(endedBy),
  })
  for (const { team_id, id, failing_since, enabled } of endpoints) {
    const own = delivered.filter(({ answer: { row } }) => row.endpoint_id === id)
    const reason = reasonToStop(own, failing_since)
    if (!enabled || reason === null) continue
    const waiting = await stopNotifying(tx, team_id, { id, reason })
    await queue.enqueue(tx, 'mail-owners', [{ team_id, endpoint_id: id, notice_id: idNow() }])
    log.warn({ team_id, endpoint_id: id, reason, failed: waiting }, 'disabled a webhook')
  }
}

/** Returns why an endpoint must be disabled. Null if it stays enabled. */
function reasonToStop(own: readonly Delivered<Attempt>[], failingSince: string | null): string | null {
  if (own.some(({ answer: { answer } }) => answer.status === GONE_STATUS)) return `it returned ${GONE_STATUS}`
  const overdue = (at: Date) =>
    failingSince !== null && at.getTime() - Date.parse(failingSince) >= DISABLE_AFTER_MS
  return own.some(({ at, answer: { answer } }) => !isTaken(answer) && overdue(at))
    ? 'only failures for five days'
    : null
}

function toAttempt({ answer: { row, answer }, at }: Delivered<Attempt>): WebhookAttempt {
  const { team_id, endpoint_id, id: message_id } = row
  return {
    ...{ team_id, endpoint_id, message_id, at },
    id: idAt(at),
    status: answer.status,
    ms: answer.ms,
    response: answer.response,
    counts: answer.wait_seconds === null,
  }
}

function toResults(delivered: readonly Delivered<Attempt>[]): EndpointResult[] {
  const latest = (times: Date[]) => times.sort((one, other) => other.getTime() - one.getTime())[0] ?? null
  return [...Map.groupBy(delivered, ({ answer: { row } }) => row.endpoint_id)].flatMap(([id, own]) => {
    const team_id = own[0]?.answer.row.team_id
    if (team_id === undefined) return []
    const success_at = latest(own.filter((each) => isTaken(each.answer.answer)).map(({ at }) => at))
    const failures = own.filter((each) => !isTaken(each.answer.answer)).map(({ at }) => at)
    const since = failures.filter((at) => success_at === null || at > success_at)
    return [{ team_id, id, success_at, failure_at: since.reduce<Date | null>(earlier, null) }]
  })
}

const earlier = (one: Date | null, other: Date): Date => (one !== null && one < other ? one : other)
