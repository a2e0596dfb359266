/**
 * Defines the kinds of background jobs, each with its slice and its audit entry. To add a kind, add a value
 * to KINDS, and its texts to api/dashboard/pages/background-job.ts. Its name is the action in the audit log.
 * A slice is a short batch in the caller's transaction, and only depends on the cursor.
 */
import { NIL } from 'uuid'
import { CAUSES } from '../../audience/contacts/effect.ts'
import { erasureHash } from '../../audience/contacts/erased.ts'
import { importSlice } from '../../audience/import/import.ts'
import { type Copied, copyNext } from '../../audience/suppressions/copy.ts'
import { liftBatch } from '../../audience/suppressions/lift.ts'
import type { Deliverable } from '../../channels/channel.sql.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { WHATSAPP } from '../../channels/whatsapp.sql.ts'
import { redriveBatch } from '../../delivery/queues.ts'
import { type PickedCursor, requeuePicked } from '../../delivery/requeue.ts'
import { type BatchCursor, deleteBatch, requeueBatch } from '../../messages/emails/bulk.ts'
import { webhooksToRequeue } from '../../messages/webhooks/listing.sql.ts'
import { replaySlice } from '../../messages/webhooks/replay.ts'
import { purgeTexts } from '../../messages/whatsapp/purge-texts.ts'
import type { Secrets } from '../../process/secrets.ts'
import { type Erasure, eraseSlice } from '../retention/erase.ts'
import { define, type Slicing, totalOf } from './kind.ts'
import {
  either,
  type Reader,
  readAfter,
  readAnything,
  readBatchCursor,
  readChanged,
  readCopied,
  readErasing,
  readErasure,
  readErasureCursor,
  readImportCursor,
  readImporting,
  readLift,
  readLifted,
  readMatching,
  readMatchingRequeue,
  readPicked,
  readPickedWebhooks,
  readRedriven,
  readRedriving,
  readRefused,
  readReplay,
  readReplayed,
} from './stored.ts'

type Changed = { changed: number }
type Batch<C> = Changed & { cursor: C | null; checked: number }

/** A bulk action on a team's messages in batches. @param nouns the unit in the audit log. */
const batchwise = <G extends { words: string }, C extends object>(
  nouns: string,
  reads: { given: Reader<G>; cursor: Reader<C> },
  batchOf: (at: Slicing, teamId: string, given: G, cursor: C | undefined) => Promise<Batch<C>>,
) =>
  define<G, C, Changed>({
    ...reads,
    result: readChanged,
    async slice(at, { team_id, given, cursor, done, total, result }) {
      const batch = await batchOf(at, team_id ?? '', given, cursor ?? undefined)
      const changed = (result.changed ?? 0) + batch.changed
      const checked = done + batch.checked
      return {
        cursor: batch.cursor,
        done: checked,
        total: totalOf(checked, batch, total),
        result: { changed },
      }
    },
    entry: ({ words: detail }, { changed }) =>
      changed === 0 ? null : { subject: `${changed} ${nouns}`, detail },
  })

/** Requeues a manual selection of a channel's messages for the CLI. */
const requeueing = (channel: Deliverable) =>
  batchwise(`${channel.noun}s`, { given: readPicked, cursor: readAfter }, (at, teamId, given, cursor) =>
    requeuePicked({ ...at, channel }, teamId, given, cursor),
  )

/** Requeues emails that match a filter, or that were picked. */
const requeueingEmails = batchwise(
  `${EMAIL.noun}s`,
  { given: either(readMatchingRequeue, readPicked), cursor: either(readBatchCursor, readAfter) },
  (at, teamId, given, cursor): Promise<Batch<BatchCursor | PickedCursor>> => {
    if ('filter' in given)
      return requeueBatch(at, teamId, given, cursor && 'taken' in cursor ? cursor : undefined)
    const after = cursor && 'after' in cursor ? cursor : undefined
    return requeuePicked({ ...at, channel: EMAIL }, teamId, given, after)
  },
)

const requeueingWebhooks = batchwise(
  `${WEBHOOK.noun}s`,
  { given: readPickedWebhooks, cursor: readAfter },
  (at, teamId, { webhook, type, ...picked }, cursor) =>
    requeuePicked({ ...at, channel: WEBHOOK }, teamId, picked, cursor, (part) =>
      webhooksToRequeue(at.tx, teamId, { webhook, type, force: picked.force }, part),
    ),
)

const redriving = define({
  given: readRedriving,
  cursor: readAnything,
  result: readRedriven,
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
  entry: ({ queue }, { redriven }) => ({ subject: queue, detail: `${redriven} jobs` }),
})

const importing = define({
  given: readImporting,
  cursor: readImportCursor,
  result: readRefused,
  async slice({ secrets, ...at }, { team_id, given, cursor, done, total, result, begun_at }) {
    if (!secrets) throw new Error('an import needs SECRET_KEY')
    const upserting = { ...at, secrets, since: new Date(begun_at) }
    const slice = await importSlice(upserting, team_id ?? '', given.import_id, cursor)
    const refused = (result.refused ?? 0) + slice.refused
    return { cursor: slice.cursor, done: done + slice.done, total: slice.total ?? total, result: { refused } }
  },
  entry: ({ file_name, words }, { refused }) => ({
    subject: file_name,
    detail: `${words === undefined ? '' : `${words}; `}${refused} refused`,
  }),
})

const replaying = define({
  given: readReplay,
  cursor: readAfter,
  result: readReplayed,
  async slice(at, { team_id, given, cursor, done, total }) {
    const { replayed, ...step } = await replaySlice(at, team_id ?? '', given, { cursor, done })
    const all = done + replayed
    return { cursor: step.cursor, done: all, total: totalOf(all, step, total), result: { replayed: all } }
  },
  entry: ({ endpoint_id: subject }, { replayed }) => ({ subject, detail: `${replayed} messages` }),
})

const lifting = define({
  given: readLift,
  cursor: readAfter,
  result: readLifted,
  async slice({ secrets, ...at }, { team_id, given, cursor, done, total, result }) {
    if (!secrets) throw new Error('to remove suppressions needs SECRET_KEY')
    const batch = await liftBatch({ ...at, secrets }, team_id ?? '', given, { cursor, done })
    const lifted = (result.lifted ?? 0) + batch.lifted
    return { cursor: batch.cursor, done: lifted, total: totalOf(lifted, batch, total), result: { lifted } }
  },
  entry: ({ reason, words }, { lifted }) =>
    lifted === 0 ? null : { subject: `${lifted} addresses`, detail: `${reason} (${words})` },
})

/** How many contacts one slice copies. */
const COPY_BATCH = 500

/** Suppressions from before the table of addresses existed (audience/suppressions/copy.ts). */
const judging = define<object, object, Copied>({
  given: readAnything,
  cursor: readAnything,
  result: readCopied,
  async slice({ tx, now }, { done, result }) {
    const { checked, copied } = await copyNext(tx, COPY_BATCH, now)
    const counts: Copied = {}
    for (const cause of CAUSES) {
      const count = (result[cause] ?? 0) + (copied[cause] ?? 0)
      if (count > 0) counts[cause] = count
    }
    const cursor = checked < COPY_BATCH ? null : {}
    return { cursor, done: done + checked, total: null, result: counts }
  },
  entry: () => null,
})

const erasing = define({
  given: readErasing,
  cursor: readErasureCursor,
  result: readErasure,
  async slice({ secrets, ...at }, { team_id, given, cursor, done, result }) {
    if (!secrets) throw new Error('to erase needs SECRET_KEY')
    const slice = await eraseSlice({ ...at, secrets }, team_id ?? '', given.identity, cursor)
    const sum = (count: 'emails' | 'waiting_emails_deleted' | 'reports') =>
      (result[count] ?? 0) + (slice[count] ?? 0)
    const erasure: Erasure = {
      contact: (result.contact ?? false) || (slice.contact ?? false),
      emails: sum('emails'),
      waiting_emails_deleted: sum('waiting_emails_deleted'),
      reports: sum('reports'),
    }
    return { cursor: slice.cursor, done: done + slice.checked, total: null, result: erasure }
  },
  entry: ({ subject }) => ({ subject }),
})

/** Creates the erasure of an address. The audit log identifies the address by a keyed hash. */
export const toErasure = (
  secrets: Pick<Secrets, 'sign'>,
  teamId: string,
  identity: string,
): { kind: 'contact.erase'; team_id: string; given: Given<'contact.erase'> } => ({
  kind: 'contact.erase',
  team_id: teamId,
  given: { identity, subject: erasureHash(secrets, teamId, identity).toString('hex') },
})

const purgingTexts = define({
  given: readAnything,
  cursor: readAfter,
  result: readChanged,
  async slice({ tx }, { cursor, done, result }) {
    const { cursor: next, checked, changed } = await purgeTexts(tx, cursor?.after ?? NIL)
    const all = (result.changed ?? 0) + changed
    return { cursor: next, done: done + checked, total: null, result: { changed: all } }
  },
  entry: (_given, { changed }) =>
    changed === 0 ? null : { subject: `${changed} reports`, detail: 'what recipients wrote' },
})

const deletingEmails = batchwise('emails', { given: readMatching, cursor: readBatchCursor }, deleteBatch)

export const KINDS = {
  'contact.import': importing,
  'suppression.import': importing,
  'suppression.lift': lifting,
  'suppression.judge': judging,
  'contact.erase': erasing,
  'email.requeue': requeueingEmails,
  'whatsapp.requeue': requeueing(WHATSAPP),
  'webhook.requeue': requeueing(WEBHOOK),
  'email.delete': deletingEmails,
  // The same work by another name. Version 0.1.0 would ignore a part of its filter, and leaves it to newer workers.
  'email.delete_apart': define({ ...deletingEmails, action: 'email.delete' }),
  'email.requeue_apart': define({ ...requeueingEmails, action: 'email.requeue' }),
  'queue.redrive': redriving,
  'webhook.replay': replaying,
  'webhook.requeue_matching': define({ ...requeueingWebhooks, action: 'webhook.requeue' }),
  'report.purge': purgingTexts,
}

export type BackgroundJobKind = keyof typeof KINDS
export type Given<K extends BackgroundJobKind> = NonNullable<ReturnType<(typeof KINDS)[K]['given']>>

export const isKnownKind = (kind: string): kind is BackgroundJobKind => Object.hasOwn(KINDS, kind)
