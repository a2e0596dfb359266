/**
 * The verb `requeue` of both channels: one message, or all of a team's that match a filter. A channel may bring
 * filters of its own.
 * Promises: says what it would do with --dry-run, and which pause is in the way: it jumps none (DECISIONS: Requeue).
 */
import type { Command } from 'commander'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import type { Deliverable } from '../channels/channel.sql.ts'
import { pausesOf, requeuePicked, requeueRefusal } from '../delivery/requeue.ts'
import { Refusal } from '../errors.ts'
import type { At, Tx } from '../postgres/pool.ts'
import type { Admin } from './context.ts'
import { instant, oneOf, uuid } from './input.ts'
import { answer } from './noun.ts'

type Options = { status?: string; since?: Date; force?: boolean; dryRun?: boolean }

/** What else a channel's messages are picked by. */
type Filter = {
  /** Adds its flags. */
  flags(command: Command): Command
  /** Those that fit and can be requeued. */
  ids(tx: Tx, team: string, options: object): Promise<readonly string[]>
}

type Sort = { channel: Deliverable; statuses: readonly string[]; what: string; filter?: Filter }

/** Adds the verb. `statuses`: the channel's. */
export function requeueVerb(noun: Command, admin: Admin, { channel, statuses, what, filter }: Sort): void {
  const command = noun
    .command('requeue')
    .description(
      `try ${what} again now that were not handed over: one, or all that match; also after giving up`,
    )
    .argument('<team>', 'id of the team', uuid)
    .argument('[id]', 'only this one', uuid)
    .option('--status <status>', `only these: ${statuses.join(', ')}`, oneOf(statuses))
    .option('--since <time>', 'accepted then or later, such as 2026-01-31', instant)
    .option('--force', 'also those that were refused for good, as long as no provider has ever taken them')
    .option('--dry-run', 'change nothing, only tell which')
    .action(
      answer((team: string, id: string | undefined, options: Options) => {
        const { force: _force, dryRun: _dryRun, ...chosen } = options
        if (id === undefined && Object.keys(chosen).length === 0) {
          const others = filter ? ' and those of `find`' : ''
          throw new Refusal('bad_request', `name one message, or a filter: --status, --since${others}`)
        }
        return requeue(admin, { channel, filter }, { team, id, options, action: `${noun.name()}.requeue` })
      }),
    )
  filter?.flags(command)
}

async function requeue(
  admin: Admin,
  { channel, filter }: { channel: Deliverable; filter: Filter | undefined },
  { team, id, options, action }: { team: string; id?: string | undefined; options: Options; action: string },
) {
  const { force = false, dryRun = false, status, since, ...others } = options
  const queue = await admin.queue()
  const work = async ({ tx, now }: At) => {
    await teamOrRefusal(tx, team)
    const ids = id === undefined ? await filter?.ids(tx, team, options) : [id]
    const found = await requeuePicked({ tx, now, queue }, channel, team, {
      ids,
      status,
      since,
      force,
      dryRun,
    })
    if (id !== undefined && found.length === 0) {
      const { code, message } = await requeueRefusal(tx, channel, { team_id: team, id })
      throw new Refusal(code, code === 'bad_request' ? `${message} (with --force)` : message)
    }
    return { found, now, paused: await pausesOf(tx, channel) }
  }
  const detail = [
    ...(status === undefined ? [] : [`status: ${status}`]),
    ...(since === undefined ? [] : [`since: ${since.toISOString()}`]),
    ...Object.entries(others).map(
      ([name, value]: [string, unknown]) => `${name}: ${value instanceof Date ? value.toISOString() : value}`,
    ),
    ...(force ? ['refused ones too'] : []),
  ].join(', ')
  const { found, now, paused } = await admin.change(work, ({ found: { length } }) =>
    dryRun || length === 0 ? null : { team_id: team, action, subject: id ?? `${length} messages`, detail },
  )
  const shared = { requeued_at: dryRun ? null : now.toISOString(), dry_run: dryRun, paused }
  if (id === undefined) return { requeued: found.length, ...shared, ids: found }
  return { id, status: 'queued', ...shared }
}
