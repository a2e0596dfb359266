/**
 * The verb `requeue` of every channel: one message, or all of a team's that match a filter, as a background job. The
 * output includes active pauses, which are never bypassed (DECISIONS: Requeue).
 */

import type { Command } from 'commander'
import { requireTeam } from '../accounts/teams/view.ts'
import { hasErased } from '../audience/contacts/erased.sql.ts'
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { requeueableMessages, requeuedAt } from '../delivery/requeue.sql.ts'
import {
  assertRequeueable,
  loadPauses,
  type PickedByPerson,
  requeueError,
  requeueOne,
} from '../delivery/requeue.ts'
import { leaveOutSuppressed } from '../delivery/suppressed.ts'
import { requestError } from '../errors.ts'
import type { MatchingRequeue } from '../messages/emails/bulk.ts'
import type { WebhookPick } from '../messages/webhooks/listing.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { seenNow } from '../postgres/snapshot.sql.ts'
import type { Admin, UnstartedJob } from './context.ts'
import { instant, only, uuidArgument } from './input.ts'
import { answer, type Noun } from './noun.ts'
import { TEXTS } from './texts.ts'

type Options = { status?: string; since?: Date; force?: boolean; dryRun?: boolean }

type Found = {
  /** The IDs of the first and the last message. */
  between: { oldest: string; newest: string }
  /** The time of the search, as a time and as a snapshot (db/postgres/snapshot.sql.ts). */
  at: string
  seen: string
  picked: PickedByPerson
}
type RequeueJob =
  | { kind: 'email.requeue'; given: MatchingRequeue }
  | { kind: 'webhook.requeue_matching'; given: PickedByPerson & WebhookPick }

/** The additional filters of a channel. */
export type RequeueFilter = {
  flags(command: Command): Command
  /** Returns the matching messages that can be requeued. */
  ids(tx: Tx, team: string, options: object): Promise<readonly string[]>
  /** The background job that requeues the matching messages. It stores the filter instead of the IDs. */
  job(options: object, found: Found): RequeueJob
  /** @throws RequestError if a requeue of the message would fail anyway. */
  check?(tx: Tx, ref: DeliveryRef): Promise<void>
}

type Texts = Record<'about' | 'one' | 'since' | 'force', string>
type Sort = { channel: Deliverable; statuses: readonly string[]; texts: Texts; filter?: RequeueFilter }

/** The help of the verb for messages of a channel. @param what their plural. */
export const textsFor = (what: string): Texts => ({
  about: `Requeue ${what}: one, or all that match. Messages accepted by a provider are never sent again`,
  one: 'only this message',
  since: 'accepted at this time or later, such as 2026-01-31',
  force:
    'also requeue permanently rejected messages that no provider has accepted. With an ID, also a scheduled or expired message',
})

/** Flags that don't select messages. */
const NOT_FILTERS = ['--force', '--dry-run']

/** Adds the verb. @param statuses the channel's statuses. */
export function requeueVerb({ verb, admin }: Noun, { channel, statuses, texts, filter }: Sort): void {
  const command = verb('requeue TEAM [ID]', texts.about, { ID: [texts.one, uuidArgument] })
    .option('--status <status>', ...only(statuses))
    .option('--since <time>', texts.since, instant)
    .option('--force', texts.force)
    .option('--dry-run', 'change nothing, only list the IDs')
    .action(
      answer((team: string, id: string | undefined, options: Options): Promise<object> => {
        const { force: _force, dryRun: _dryRun, ...chosen } = options
        if (id === undefined && Object.keys(chosen).length === 0) {
          const filters = command.options
            .filter(({ hidden }) => !hidden)
            .map(({ long }) => long)
            .filter((long) => !NOT_FILTERS.includes(long ?? ''))
          throw requestError('bad_request', TEXTS.whichMessages, { filters: filters.join(', ') })
        }
        return id === undefined
          ? requeueAll(admin, { channel, filter }, { team, options })
          : requeueById(admin, { channel, filter }, { team, options, id })
      }),
    )
  filter?.flags(command)
}

type Requeueing = { team: string; options: Options }
type Of = { channel: Deliverable; filter: RequeueFilter | undefined }

/** The filter as the audit log shows it. */
const describeFilter = ({ status, since, force, dryRun: _, ...others }: Options): string =>
  [
    ...(status === undefined ? [] : [`status: ${status}`]),
    ...(since === undefined ? [] : [`since: ${since.toISOString()}`]),
    ...Object.entries(others).map(
      ([name, value]: [string, unknown]) => `${name}: ${value instanceof Date ? value.toISOString() : value}`,
    ),
    ...(force ? ['including rejected'] : []),
  ].join(', ')

async function requeueById(
  admin: Admin,
  { channel, filter }: Of,
  { team, id, options }: Requeueing & { id: string },
) {
  const { force = false, dryRun = false } = options
  const queue = await admin.queue()
  const ref = { team_id: team, id }
  const { now, paused } = await admin.transaction(async (by) => {
    const { tx, now } = by
    await requireTeam(tx, team)
    await filter?.check?.(tx, ref)
    const found = await requeueableMessages(tx, channel, team, {
      ...chosenBy(options),
      ids: [id],
      named: true,
    })
    if (found.length === 0) throw await requeueError(tx, channel, ref)
    const how = { force, words: describeFilter({ ...options, force: false }) }
    if (!dryRun) await requeueOne({ ...by, queue }, channel, ref, how)
    else if (force) await assertRequeueable(tx, channel, ref, null)
    return { now, paused: await loadPauses(tx, channel, { team_id: team }) }
  })
  const requeued_at = dryRun ? null : now.toISOString()
  return { id, status: 'queued', requeued_at, dry_run: dryRun, paused }
}

const chosenBy = ({ status, since, force = false }: Options) => ({ status, since, force })

/** IDs per statement. */
const IDS_AT_ONCE = 5_000

async function readByIds<I, T>(ids: readonly I[], read: (part: readonly I[]) => Promise<readonly T[]>) {
  const found: T[] = []
  for (let start = 0; start < ids.length; start += IDS_AT_ONCE)
    found.push(...(await read(ids.slice(start, start + IDS_AT_ONCE))))
  return found
}

/** Requeues all matching messages in a background job. If this process dies, workers continue. */
async function requeueAll(admin: Admin, { channel, filter }: Of, { team, options }: Requeueing) {
  const { force = false, dryRun = false, status, since, ...others } = options
  const database = await admin.database()
  await requireTeam(database, team)
  const [now, seen] = [await admin.now(), await seenNow(database)]
  const ids = await filter?.ids(database, team, options)
  const chosen = chosenBy(options)
  const open = ids
    ? await readByIds(ids.toSorted(), (part) =>
        requeueableMessages(database, channel, team, { ...chosen, ids: part }),
      )
    : await requeueableMessages(database, channel, team, chosen)
  const secrets = channel.suppressible && (await hasErased(database, team)) ? await admin.secrets() : null
  const parts = await readByIds(open, async (part) => [
    await leaveOutSuppressed({ tx: database, secrets }, channel, team, part),
  ])
  const found = parts.flatMap(({ left }) => left)
  const [first, last] = [found[0], found.at(-1)]
  if (first && last && !dryRun) {
    const at = now.toISOString()
    const picked: PickedByPerson = {
      ...(status === undefined ? {} : { status }),
      ...(since === undefined ? {} : { since: since.toISOString() }),
      ...{ force, until: last.id, at },
    }
    const between = { oldest: first.id, newest: last.id }
    const job =
      filter && Object.keys(others).length > 0
        ? filter.job(options, { between, at, seen, picked })
        : { kind: `${channel.name}.requeue` as const, given: picked }
    const given = { ...job.given, words: describeFilter(options) }
    const wanted = { kind: job.kind, team_id: team, given, total: found.length } as UnstartedJob
    await admin.runBackgroundJob(wanted, secrets)
  }
  const all = found.map(({ id }) => id)
  const requeued = dryRun
    ? found
    : await readByIds(all, (part) => requeuedAt(database, channel, team, { ids: part, at: now }))
  return {
    requeued: requeued.length,
    ...(channel.suppressible
      ? { suppressed: parts.reduce((sum, { suppressed }) => sum + suppressed, 0) }
      : {}),
    requeued_at: dryRun ? null : now.toISOString(),
    dry_run: dryRun,
    paused: await loadPauses(database, channel, { team_id: team }),
    ids: requeued.map(({ id }) => id),
  }
}
