/**
 * Requeues messages that Meta accepted and then failed temporarily. A failure counts for the attempt whose ID it
 * names. Delivered messages don't change. A message that has been deferred for too long fails.
 */
import { queueOf } from '../../channels/queues.ts'
import { APPLIED, type EventResult, UNKNOWN } from '../../delivery/reports/event-result.ts'
import { retryPause } from '../../delivery/retry-pause.ts'
import { pauseRecipients } from '../../delivery/senders/senders.sql.ts'
import { triedSince } from '../../delivery/tried-since.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { DELIVERY_DEADLINE_MS } from '../../queue/jobs.ts'
import { type LockedMessage, readDeferrals, releaseMessages } from './apply-events.sql.ts'
import { storeWhatsappEvents, type WhatsappEvent } from './events.sql.ts'
import { keyOf, type MessageRef } from './messages.sql.ts'
import { listForms } from './number-forms.ts'

/**
 * `held`: because of its sender, which is paused. `deferred`: because of itself, or its recipient (`wait_seconds`).
 */
export type LateFailure = WhatsappEvent & {
  kind: 'held' | 'deferred'
  provider_message_id: string | null
  wait_seconds?: number | undefined
}

/** While a failure is newer than this, its attempt may not be stored yet. */
const RECORDING_MS = 30_000

/** How long a message waits after its last failure, and whether it has been deferred for too long. */
type Wait = { seconds: number; isOverdue: boolean }

type Found = LateFailure & { row: LockedMessage; index: number }

export async function returnToQueue(
  tx: Tx,
  failures: readonly LateFailure[],
  {
    now,
    read,
  }: { now: Date; read: (refs: readonly MessageRef[]) => Promise<ReadonlyMap<string, LockedMessage>> },
): Promise<{ results: EventResult[]; overdue: WhatsappEvent[] }> {
  if (failures.length === 0) return { results: [], overdue: [] }
  // Read again, because the batch's other events have changed them.
  const rows = await read(failures)
  const found = failures.flatMap((failure, index): Found[] => {
    const row = rows.get(keyOf(failure))
    return row && !isRecording(failure, row, now) ? [{ ...counted(failure, row), row, index }] : []
  })
  const waits = await computeWaits(tx, found, now)
  const waitOf = (failure: LateFailure): Wait => waits.get(keyOf(failure)) ?? { seconds: 0, isOverdue: false }
  const isOver = (failure: LateFailure): boolean => failure.kind === 'deferred' && waitOf(failure).isOverdue
  const stored = await storeWhatsappEvents(
    tx,
    found.filter((failure) => !isOver(failure)),
  )
  const given = stored.filter(isOfLatestAttempt)
  if (given.length > 0) await releaseMessages(tx, given, now)
  await pausePairs(tx, given, { now, waitOf })
  const again = new Map(given.map((failure) => [failure.index, failure]))
  const placed = new Set(found.map(({ index }) => index))
  const results = failures.map(({ team_id, message_id }, index): EventResult => {
    const failure = again.get(index)
    if (failure) {
      const { seconds } = waitOf(failure)
      const { own_number: number, parts } = failure.row
      const again = { team_id, message_id, number, parts: parts === true, seconds }
      return { kind: 'applied', again }
    }
    return placed.has(index) ? APPLIED : UNKNOWN
  })
  const overdue = found
    .filter(isOver)
    .map(({ row: _row, index: _index, ...event }) => ({ ...event, kind: 'failed' as const }))
  return { results, overdue }
}

/**
 * Dates a failure at the start of its attempts at the earliest, because Meta's times have no fraction of a second.
 */
const counted = (failure: LateFailure, { since }: LockedMessage): LateFailure => ({
  ...failure,
  occurred_at: new Date(Math.max(failure.occurred_at.getTime(), Date.parse(since))),
})

/** True if its attempt may not be stored yet. */
const isRecording = ({ occurred_at }: LateFailure, { status, untaken }: LockedMessage, now: Date): boolean =>
  status === 'queued' && untaken && now.getTime() - occurred_at.getTime() < RECORDING_MS

const isOfLatestAttempt = ({ row, provider_message_id }: Found): boolean =>
  (row.status === 'sent' || (row.status === 'queued' && !row.untaken)) &&
  (row.provider_message_id === null || row.provider_message_id === provider_message_id)

/** Returns how long each deferred message waits, as after a response that defers it. */
async function computeWaits(tx: Tx, found: readonly Found[], now: Date): Promise<Map<string, Wait>> {
  const deferred = found.filter(({ kind }) => kind === 'deferred')
  if (deferred.length === 0) return new Map()
  const histories = await readDeferrals(tx, deferred)
  const since = await findSince(tx, deferred, histories)
  const named = new Map(deferred.map((failure) => [keyOf(failure), failure.wait_seconds]))
  return new Map(
    histories.map((history): [string, Wait] => {
      const tried = since.get(history.message_id)
      const isOverdue = tried !== undefined && now.getTime() - Date.parse(tried) > DELIVERY_DEADLINE_MS
      const seconds = retryPause(history.deferrals, named.get(keyOf(history)), Math.random())
      return [keyOf(history), { seconds, isOverdue }]
    }),
  )
}

/** Returns since when the messages are attempted, without pauses of their queues, numbers and templates. */
async function findSince(
  tx: Tx,
  deferred: readonly Found[],
  histories: Awaited<ReturnType<typeof readDeferrals>>,
): Promise<ReadonlyMap<string, string>> {
  const rows = new Map(deferred.map(({ message_id, row }) => [message_id, row]))
  const senderOf = ({ id }: { id: string }) => `whatsapp:${rows.get(id)?.number}`
  const jobs = Map.groupBy(histories, ({ message_id }) => {
    const { parts = null, own_number: number = null } = rows.get(message_id) ?? {}
    return queueOf(parts ? 'whatsapp_parts' : 'whatsapp', { test: false, number })
  })
  const since = new Map<string, string>()
  for (const [job, own] of jobs) {
    const tried = own.map(({ message_id: id, ...history }) => ({ ...history, id }))
    for (const [id, at] of await triedSince(tx, { job, senderOf }, tried)) since.set(id, at)
  }
  return since
}

/** Pauses the recipients that Meta accepts no more messages for. */
async function pausePairs(
  tx: Tx,
  given: readonly Found[],
  { now, waitOf }: { now: Date; waitOf: (failure: LateFailure) => Wait },
): Promise<void> {
  const pauses = given.flatMap((failure) => {
    const { wait_seconds, row, detail: reason } = failure
    if (wait_seconds === undefined || row.number === null) return []
    const paused_until = new Date(now.getTime() + waitOf(failure).seconds * 1_000)
    const sender = `whatsapp:${row.number}`
    return listForms(row.recipient).map((recipient) => ({ sender, recipient, paused_until, reason }))
  })
  if (pauses.length > 0) await pauseRecipients(tx, pauses)
}
