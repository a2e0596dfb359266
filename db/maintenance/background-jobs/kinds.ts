/**
 * Defines the kinds of background jobs, each with its slice and its audit entry. To add a kind, add a value
 * to KINDS, and its texts to api/dashboard/pages/background-job.ts. Its name is the action in the audit log.
 * A slice is a short batch in the caller's transaction, and only depends on the cursor.
 */
import { NIL } from 'uuid'
import type { AuditEntry, By } from '../../accounts/audit/record.ts'
import { erasureHash } from '../../audience/contacts/erased.ts'
import { type ImportCursor, importSlice } from '../../audience/import/import.ts'
import { type Copied, copyNext } from '../../audience/suppressions/copy.ts'
import { type BulkLift, type LiftCursor, liftBatch } from '../../audience/suppressions/lift.ts'
import type { Deliverable } from '../../channels/channel.sql.ts'
import { CHANNELS } from '../../channels/channels.sql.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { redriveBatch } from '../../delivery/queues.ts'
import { type PickedByPerson, type PickedCursor, requeuePicked } from '../../delivery/requeue.ts'
import {
  type BatchCursor,
  deleteBatch,
  type MatchingRequeue,
  requeueBatch,
} from '../../messages/emails/bulk.ts'
import { type WebhookPick, webhooksToRequeue } from '../../messages/webhooks/listing.sql.ts'
import { type Replay, type ReplayCursor, replaySlice } from '../../messages/webhooks/replay.ts'
import { type PurgeCursor, purgeTexts } from '../../messages/whatsapp/purge-texts.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { JobName } from '../../queue/jobs.ts'
import type { Producer } from '../../queue/producer.ts'
import { type Erasure, type ErasureCursor, eraseSlice, NOTHING_ERASED } from '../retention/erase.ts'
import type { BackgroundJobStep, OpenBackgroundJob } from './background-jobs.sql.ts'

export type BackgroundJobTools = {
  queue: Pick<Producer, 'enqueue' | 'reenqueue' | 'redrive'>
  /** Null if not requested. The CLI opens them for the kinds that need them. */
  secrets: Pick<Secrets, 'signatures' | 'sign'> | null
}

type Slicing = By & BackgroundJobTools

export type Kind<G, C> = {
  slice(
    at: Slicing,
    job: Omit<OpenBackgroundJob, 'given' | 'cursor'> & { given: G; cursor: C | null },
  ): Promise<BackgroundJobStep>
  /** Its action in the audit log, if that is not the kind's name. */
  action?: string
  /** Null: nothing was changed. */
  entry(given: G, result: object): Pick<AuditEntry, 'subject' | 'detail'> | null
}

/** The known total. At the end, the number done, because some rows may have been deleted before. */
const totalOf = (done: number, { cursor }: { cursor: object | null }, total: number | null): number | null =>
  cursor === null || total === null ? total && done : Math.max(total, done)

/** The filter, as the audit log shows it. */
type Words = { words: string }
type Changed = { changed: number }

/**
 * A bulk action on a team's messages in batches.
 * @param nouns the unit in the audit log.
 */
const batchwise = <G, C extends object>(
  nouns: string,
  batchOf: (
    at: Slicing,
    teamId: string,
    given: G,
    cursor: C | undefined,
  ) => Promise<Changed & { cursor: C | null; checked: number }>,
): Kind<G & Words, C> => ({
  async slice(at, { team_id, given, cursor, done, total, result }) {
    const batch = await batchOf(at, team_id ?? '', given, cursor ?? undefined)
    const changed = ((result as Partial<Changed>).changed ?? 0) + batch.changed
    const checked = done + batch.checked
    return { cursor: batch.cursor, done: checked, total: totalOf(checked, batch, total), result: { changed } }
  },
  entry({ words: detail }, result) {
    const { changed } = result as Changed
    return changed === 0 ? null : { subject: `${changed} ${nouns}`, detail }
  },
})

/** The same work by another name. Version 0.1.0 would ignore a part of its filter, and leaves it to newer workers. */
const newer = <G, C>(kind: Kind<G, C>, action: string): Kind<G, C> => ({ ...kind, action })

/** A manual selection: emails counted by a page, or a channel's messages found by the CLI. */
type Requeueing = MatchingRequeue | PickedByPerson

const requeueing = (channel: Deliverable) =>
  batchwise<Requeueing, BatchCursor | PickedCursor>(`${channel.noun}s`, (at, teamId, given, cursor) =>
    'filter' in given
      ? requeueBatch(at, teamId, given, cursor as BatchCursor | undefined)
      : requeuePicked({ ...at, channel }, teamId, given, cursor as PickedCursor | undefined),
  )

/** Requeues webhooks by a filter. */
const requeueingWebhooks = newer(
  batchwise<PickedByPerson & WebhookPick, PickedCursor>(
    `${WEBHOOK.noun}s`,
    (at, teamId, { webhook, type, ...picked }, cursor) =>
      requeuePicked({ ...at, channel: WEBHOOK }, teamId, picked, cursor, (part) =>
        webhooksToRequeue(at.tx, teamId, { webhook, type, force: picked.force }, part),
      ),
  ),
  `${WEBHOOK.name}.requeue`,
)

type Requeues = Record<`${Deliverable['name']}.requeue`, ReturnType<typeof requeueing>>
// Each channel's name is in the list once.
const requeues = Object.fromEntries(
  [...CHANNELS, WEBHOOK].map((channel) => [`${channel.name}.requeue`, requeueing(channel)]),
) as Requeues

/** Without `most`, all dead letters that existed at `seen`. */
type Redriving = { queue: JobName; reason: string | null; seen: string; most?: number }

const redriving: Kind<Redriving, object> = {
  async slice(at, { given: { queue, reason, seen, most }, done, total }) {
    const left = most === undefined ? null : most - done
    const { moved, more } = await redriveBatch(at, queue, { reason, seen, most: left })
    const redriven = done + moved
    const next = more ? {} : null
    return {
      cursor: next,
      done: redriven,
      total: totalOf(redriven, { cursor: next }, total),
      result: { redriven },
    }
  },
  entry: ({ queue }, result) => ({
    subject: queue,
    detail: `${(result as { redriven: number }).redriven} jobs`,
  }),
}

/** `words`: an additional detail in the audit log. */
type Importing = { import_id: string; file_name: string; words?: string }

const importing: Kind<Importing, ImportCursor> = {
  async slice({ secrets, ...at }, { team_id, given, cursor, done, total, result, begun_at }) {
    if (!secrets) throw new Error('an import needs SECRET_KEY')
    const upserting = { ...at, secrets, since: new Date(begun_at) }
    const slice = await importSlice(upserting, team_id ?? '', given.import_id, cursor)
    const refused = ((result as { refused?: number }).refused ?? 0) + slice.refused
    return { cursor: slice.cursor, done: done + slice.done, total: slice.total ?? total, result: { refused } }
  },
  entry: ({ file_name, words }, result) => ({
    subject: file_name,
    detail: `${words === undefined ? '' : `${words}; `}${(result as { refused: number }).refused} refused`,
  }),
}

const replaying: Kind<Replay, ReplayCursor> = {
  async slice(at, { team_id, given, cursor, done, total }) {
    const { replayed, ...step } = await replaySlice(at, team_id ?? '', given, { cursor, done })
    const all = done + replayed
    return { cursor: step.cursor, done: all, total: totalOf(all, step, total), result: { replayed: all } }
  },
  entry: ({ endpoint_id: subject }, result) => ({
    subject,
    detail: `${(result as { replayed: number }).replayed} messages`,
  }),
}

const lifting: Kind<BulkLift & Words, LiftCursor> = {
  async slice({ secrets, ...at }, { team_id, given, cursor, done, total, result }) {
    if (!secrets) throw new Error('to remove suppressions needs SECRET_KEY')
    const batch = await liftBatch({ ...at, secrets }, team_id ?? '', given, { cursor, done })
    const lifted = ((result as { lifted?: number }).lifted ?? 0) + batch.lifted
    return { cursor: batch.cursor, done: lifted, total: totalOf(lifted, batch, total), result: { lifted } }
  },
  entry({ reason, words }, result) {
    const { lifted } = result as { lifted: number }
    return lifted === 0 ? null : { subject: `${lifted} addresses`, detail: `${reason} (${words})` }
  },
}

/** How many contacts one slice copies. */
const COPY_BATCH = 500

/** Suppressions from before the table of addresses existed (audience/suppressions/copy.ts). */
const judging: Kind<object, object> = {
  async slice({ tx, now }, { done, result }) {
    const { checked, copied } = await copyNext(tx, COPY_BATCH, now)
    const counts: Copied = { ...(result as Copied) }
    for (const [cause, count] of Object.entries(copied) as [keyof Copied, number][])
      counts[cause] = (counts[cause] ?? 0) + count
    const cursor = checked < COPY_BATCH ? null : {}
    return { cursor, done: done + checked, total: null, result: counts }
  },
  entry: () => null,
}

/** `subject` identifies the address in the audit log without revealing it. */
type Erasing = { identity: string; subject: string }

const erasing: Kind<Erasing, ErasureCursor> = {
  async slice({ secrets, ...at }, { team_id, given, cursor, done, result }) {
    if (!secrets) throw new Error('to erase needs SECRET_KEY')
    const slice = await eraseSlice({ ...at, secrets }, team_id ?? '', given.identity, cursor)
    const before = { ...NOTHING_ERASED, ...(result as Partial<Erasure>) }
    const { contact = false, emails = 0, waiting_emails_deleted = 0, reports = 0 } = slice
    const erasure: Erasure = {
      contact: before.contact || contact,
      emails: before.emails + emails,
      waiting_emails_deleted: before.waiting_emails_deleted + waiting_emails_deleted,
      reports: before.reports + reports,
    }
    return { cursor: slice.cursor, done: done + slice.checked, total: null, result: erasure }
  },
  entry: ({ subject }) => ({ subject }),
}

/** Creates the erasure of an address. The audit log identifies the address by a keyed hash. */
export const toErasure = (
  secrets: Pick<Secrets, 'sign'>,
  teamId: string,
  identity: string,
): { kind: 'contact.erase'; team_id: string; given: Erasing } => ({
  kind: 'contact.erase',
  team_id: teamId,
  given: { identity, subject: erasureHash(secrets, teamId, identity).toString('hex') },
})

const purgingTexts: Kind<object, PurgeCursor> = {
  async slice({ tx }, { cursor, done, result }) {
    const { cursor: next, checked, changed } = await purgeTexts(tx, cursor?.after ?? NIL)
    const all = ((result as Partial<Changed>).changed ?? 0) + changed
    return { cursor: next, done: done + checked, total: null, result: { changed: all } }
  },
  entry(_given, result) {
    const { changed } = result as Changed
    return changed === 0 ? null : { subject: `${changed} reports`, detail: 'what recipients wrote' }
  },
}

const deletingEmails = batchwise('emails', deleteBatch)

export const KINDS = {
  'contact.import': importing,
  'suppression.import': importing,
  'suppression.lift': lifting,
  'suppression.judge': judging,
  'contact.erase': erasing,
  ...requeues,
  'email.delete': deletingEmails,
  // Kinds with filters on whether an email belongs to a broadcast.
  'email.delete_apart': newer(deletingEmails, 'email.delete'),
  'email.requeue_apart': newer(requeues['email.requeue'], 'email.requeue'),
  'queue.redrive': redriving,
  'webhook.replay': replaying,
  'webhook.requeue_matching': requeueingWebhooks,
  'report.purge': purgingTexts,
}

export type BackgroundJobKind = keyof typeof KINDS
export type Given<K extends BackgroundJobKind> = (typeof KINDS)[K] extends Kind<infer G, infer _C> ? G : never
