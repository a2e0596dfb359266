/**
 * Defines the kinds of background jobs, each with its slice and its audit entry. To add a kind, add a value
 * to KINDS, and its texts to api/dashboard/pages/background-job.ts. Its name is the action in the audit log.
 * A slice is a short batch in the caller's transaction, and only depends on the cursor.
 */
import { NIL } from 'uuid'
import type { AuditEntry } from '../../accounts/audit/record.ts'
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
import { type PickedCursor, pickedMessages, requeueMany } from '../../delivery/requeue.ts'
import { type BatchCursor, matchingEmails } from '../../messages/emails/bulk.ts'
import { removeEmails } from '../../messages/emails/remove.ts'
import { webhooksToRequeue } from '../../messages/webhooks/listing.sql.ts'
import { replayableWebhooks, replayWebhooks } from '../../messages/webhooks/replay.ts'
import { purgeTexts } from '../../messages/whatsapp/purge-texts.ts'
import { plural } from '../../plural.ts'
import type { Secrets } from '../../process/secrets.ts'
import { type Erasure, eraseSlice } from '../retention/erase.ts'
import { define, type Slicing, totalOf } from './kind.ts'
import {
  either,
  type Reader,
  readAfter,
  readAnything,
  readBatchCursor,
  readCopied,
  readCount,
  readErasing,
  readErasure,
  readErasureCursor,
  readImportCursor,
  readImporting,
  readLift,
  readMatching,
  readMatchingRequeue,
  readPicked,
  readPickedWebhooks,
  readRedriving,
  readRefused,
  readReplay,
} from './stored.ts'

/** A slice: how many rows were checked and changed, and where the next one starts. */
type Slice<C> = { cursor: C | null; checked: number; changed: number }
type Place<C> = { cursor: C | null; done: number }

/**
 * Defines a kind that counts the changed rows.
 * @param count the name of the count in the stored result.
 * @param entry writes the audit log. `changed` is the count.
 */
const counting = <G extends object, C extends object>(
  count: string,
  reads: { given: Reader<G>; cursor: Reader<C> },
  next: (at: Slicing, teamId: string, given: G, place: Place<C>) => Promise<Slice<C>>,
  entry: (given: G, changed: number) => Pick<AuditEntry, 'subject' | 'detail'> | null,
) =>
  define<G, C, Record<string, number>>({
    ...reads,
    result: readCount(count),
    async slice(at, { team_id, given, cursor, done, total, result }) {
      const slice = await next(at, team_id ?? '', given, { cursor, done })
      const checked = done + slice.checked
      return {
        cursor: slice.cursor,
        done: checked,
        total: totalOf(checked, slice, total),
        result: { [count]: (result[count] ?? 0) + slice.changed },
      }
    },
    entry: (given, result) => entry(given, result[count] ?? 0),
  })

/** The messages of a slice, and where the next one starts. */
type Found<C> = { ids: readonly string[]; cursor: C | null }
type Find<G, C> = (at: Slicing, teamId: string, given: G, place: Place<C>) => Promise<Found<C>>
/** @returns how many were changed. */
type Change<G> = (at: Slicing, teamId: string, given: G, ids: readonly string[]) => Promise<number>

/** A slice of a bulk action on a team's messages: finds the next ones and changes them. */
const bulk =
  <G, C>(find: Find<G, C>, change: Change<G>) =>
  async (at: Slicing, teamId: string, given: G, place: Place<C>): Promise<Slice<C>> => {
    const { ids, cursor } = await find(at, teamId, given, place)
    const changed = ids.length === 0 ? 0 : await change(at, teamId, given, ids)
    return { cursor, checked: ids.length, changed }
  }

const changedEntry =
  (noun: string) =>
  ({ words: detail }: { words: string }, changed: number) =>
    changed === 0 ? null : { subject: plural(changed, noun), detail }

/** Requeues the found messages of a channel. `at`: their new time. Absent: the time of each slice. */
const requeueing = <G extends { words: string; force: boolean; at?: string | undefined }, C extends object>(
  channel: Deliverable,
  reads: { given: Reader<G>; cursor: Reader<C> },
  find: Find<G, C>,
) =>
  counting(
    'changed',
    reads,
    bulk<G, C>(find, async (at, teamId, { force, at: time }, ids) => {
      const now = time === undefined ? at.now : new Date(time)
      return (await requeueMany({ ...at, now }, channel, { teamId, ids, force })).length
    }),
    changedEntry(channel.noun),
  )

/** Requeues a manual selection of a channel's messages for the CLI. */
const requeueingPicked = (channel: Deliverable) =>
  requeueing(channel, { given: readPicked, cursor: readAfter }, ({ tx }, teamId, given, { cursor }) =>
    pickedMessages(tx, channel, teamId, given, cursor),
  )

/** Requeues emails that match a filter, or that were picked. */
const requeueingEmails = requeueing(
  EMAIL,
  { given: either(readMatchingRequeue, readPicked), cursor: either(readBatchCursor, readAfter) },
  ({ tx }, teamId, given, { cursor, done }): Promise<Found<BatchCursor | PickedCursor>> => {
    if ('filter' in given)
      return matchingEmails(tx, teamId, given, {
        before: cursor && 'taken' in cursor ? cursor.before : undefined,
        done,
      })
    return pickedMessages(tx, EMAIL, teamId, given, cursor && 'after' in cursor ? cursor : null)
  },
)

const requeueingWebhooks = requeueing(
  WEBHOOK,
  { given: readPickedWebhooks, cursor: readAfter },
  ({ tx }, teamId, { webhook, type, ...picked }, { cursor }) =>
    pickedMessages(tx, WEBHOOK, teamId, picked, cursor, (part) =>
      webhooksToRequeue(tx, teamId, { webhook, type, force: picked.force }, part),
    ),
)

const deletingEmails = counting(
  'changed',
  { given: readMatching, cursor: readBatchCursor },
  bulk(
    ({ tx }, teamId, given, { cursor, done }) =>
      matchingEmails(tx, teamId, given, { before: cursor?.before, done }),
    ({ tx }, teamId, _given, ids) => removeEmails({ tx }, teamId, ids),
  ),
  changedEntry(EMAIL.noun),
)

const replaying = counting(
  'replayed',
  { given: readReplay, cursor: readAfter },
  bulk(({ tx }, ...of) => replayableWebhooks(tx, ...of), replayWebhooks),
  ({ endpoint_id: subject }, replayed) => ({ subject, detail: plural(replayed, 'message') }),
)

const redriving = counting(
  'redriven',
  { given: readRedriving, cursor: readAnything },
  async (at, _team, { queue, most, ...wanted }, { done }) => {
    const left = most === undefined ? null : most - done
    const { moved, more } = await redriveBatch(at, queue, { ...wanted, most: left })
    return { cursor: more ? {} : null, checked: moved, changed: moved }
  },
  ({ queue }, redriven) => ({ subject: queue, detail: plural(redriven, 'job') }),
)

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
    detail: `${words === undefined ? '' : `${words}; `}${refused} rejected`,
  }),
})

const lifting = counting(
  'lifted',
  { given: readLift, cursor: readAfter },
  async ({ secrets, ...at }, teamId, given, place) => {
    if (!secrets) throw new Error('lifting suppressions needs SECRET_KEY')
    const { lifted, cursor } = await liftBatch({ ...at, secrets }, teamId, given, place)
    return { cursor, checked: lifted, changed: lifted }
  },
  ({ reason, words }, lifted) =>
    lifted === 0 ? null : { subject: plural(lifted, 'address', 'addresses'), detail: `${reason} (${words})` },
)

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
    if (!secrets) throw new Error('erasing personal data needs SECRET_KEY')
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

const purgingTexts = counting(
  'changed',
  { given: readAnything, cursor: readAfter },
  ({ tx }, _team, _given, { cursor }) => purgeTexts(tx, cursor?.after ?? NIL),
  (_given, changed) =>
    changed === 0 ? null : { subject: plural(changed, 'report'), detail: 'texts from recipients' },
)

export const KINDS = {
  'contact.import': importing,
  'suppression.import': importing,
  'suppression.lift': lifting,
  'suppression.judge': judging,
  'contact.erase': erasing,
  'email.requeue': requeueingEmails,
  'whatsapp.requeue': requeueingPicked(WHATSAPP),
  'webhook.requeue': requeueingPicked(WEBHOOK),
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
