/**
 * The verb `requeue` of every channel: one message, or all of a team's that match a filter, as a background job. A
 * channel may bring filters of its own.
 * Promises: says what it would do with --dry-run, and which pause is in the way: it jumps none (DECISIONS: Requeue).
 */
import type { Command } from 'commander'
import { requireTeam } from '../accounts/teams/view.ts'
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { requeueableMessages, requeuedAt } from '../delivery/requeue.sql.ts'
import { pausesOf, requeueError, requeueOne } from '../delivery/requeue.ts'
import { RequestError } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Admin } from './context.ts'
import { instant, only, uuidArgument } from './input.ts'
import { answer, type Noun } from './noun.ts'

type Options = { status?: string; since?: Date; force?: boolean; dryRun?: boolean }

/** What else a channel's messages are picked by. */
type Filter = {
  flags(command: Command): Command
  /** Those that fit and can be requeued. */
  ids(tx: Tx, team: string, options: object): Promise<readonly string[]>
  /** @throws RequestError for one that would come to nothing. */
  check?(tx: Tx, ref: DeliveryRef): Promise<void>
}

type Sort = { channel: Deliverable; statuses: readonly string[]; what: string; filter?: Filter }

/** Flags that pick no messages. */
const NOT_FILTERS = ['--force', '--dry-run']

/** Adds the verb. `statuses`: the channel's. */
export function requeueVerb({ verb, admin }: Noun, { channel, statuses, what, filter }: Sort): void {
  const about = `send again those ${what} that were not handed over: one, or all that match; also after giving up`
  const command = verb('requeue TEAM [ID]', about, { ID: ['only this one', uuidArgument] })
    .option('--status <status>', ...only(statuses))
    .option('--since <time>', 'accepted then or later, such as 2026-01-31', instant)
    .option(
      '--force',
      'also those that were refused for good, as long as no provider has ever taken them; with ID also one that waits for its time or has expired',
    )
    .option('--dry-run', 'change nothing, only list which')
    .action(
      answer((team: string, id: string | undefined, options: Options): Promise<object> => {
        const { force: _force, dryRun: _dryRun, ...chosen } = options
        if (id === undefined && Object.keys(chosen).length === 0) {
          const filters = command.options
            .map(({ long }) => long)
            .filter((long) => !NOT_FILTERS.includes(long ?? ''))
          throw new RequestError('bad_request', `name one message, or a filter: ${filters.join(', ')}`)
        }
        return id === undefined
          ? requeueAll(admin, { channel, filter }, { team, options })
          : requeueById(admin, { channel, filter }, { team, options, id })
      }),
    )
  filter?.flags(command)
}

type Requeueing = { team: string; options: Options }
type Of = { channel: Deliverable; filter: Filter | undefined }

/** The filter in the audit trail. */
const wordsOf = ({ status, since, force, dryRun: _, ...others }: Options): string =>
  [
    ...(status === undefined ? [] : [`status: ${status}`]),
    ...(since === undefined ? [] : [`since: ${since.toISOString()}`]),
    ...Object.entries(others).map(
      ([name, value]: [string, unknown]) => `${name}: ${value instanceof Date ? value.toISOString() : value}`,
    ),
    ...(force ? ['refused ones too'] : []),
  ].join(', ')

const inCli = ({ code, message }: RequestError): RequestError =>
  new RequestError(code, code === 'bad_request' ? `${message} (with --force)` : message)

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
    if (found.length === 0) throw inCli(await requeueError(tx, channel, ref))
    const how = { force, words: wordsOf({ ...options, force: false }) }
    if (!dryRun) await requeueOne({ ...by, queue }, channel, ref, how)
    return { now, paused: await pausesOf(tx, channel, { team_id: team }) }
  })
  const requeued_at = dryRun ? null : now.toISOString()
  return { id, status: 'queued', requeued_at, dry_run: dryRun, paused }
}

const chosenBy = ({ status, since, force = false }: Options) => ({ status, since, force })

/** All that match: a background job, a transaction for each batch, which workers go on with if this process dies. */
async function requeueAll(admin: Admin, { channel, filter }: Of, { team, options }: Requeueing) {
  const { force: _force, dryRun = false, status, since, ...others } = options
  const database = await admin.database()
  await requireTeam(database, team)
  const now = await admin.now()
  const ids = await filter?.ids(database, team, options)
  const found = await requeueableMessages(database, channel, team, { ...chosenBy(options), ids })
  const last = found.at(-1)
  if (last && !dryRun) {
    const given = {
      ...(ids === undefined || Object.keys(others).length === 0 ? {} : { ids: found.map(({ id }) => id) }),
      ...(status === undefined ? {} : { status }),
      ...(since === undefined ? {} : { since: since.toISOString() }),
      force: options.force ?? false,
      ...{ until: last.id, at: now.toISOString(), words: wordsOf(options) },
    }
    await admin.runBackgroundJob({
      kind: `${channel.name}.requeue`,
      team_id: team,
      given,
      total: found.length,
    })
  }
  const all = found.map(({ id }) => id)
  const requeued = dryRun ? found : await requeuedAt(database, channel, team, { ids: all, at: now })
  return {
    requeued: requeued.length,
    requeued_at: dryRun ? null : now.toISOString(),
    dry_run: dryRun,
    paused: await pausesOf(database, channel, { team_id: team }),
    ids: requeued.map(({ id }) => id),
  }
}
