/** Verbs of `webhook`: the endpoints that receive a team's events. */
import type { Command } from 'commander'
import type { DeliveryRef } from '../channels/channel.sql.ts'
import { TEST_TYPE, WEBHOOK_TYPES } from '../channels/events/webhook-types.ts'
import { KEPT_DAYS } from '../channels/events/webhooks.sql.ts'
import { WEBHOOK } from '../channels/webhook.sql.ts'
import { type EndpointFields, endpointById } from '../messages/webhooks/endpoints.sql.ts'
import {
  addEndpoint,
  changeEndpoint,
  checkEnabled,
  disableEndpoint,
  enableEndpoint,
  listEndpoints,
  removeEndpoint,
  requireEndpoint,
  rotateSecret,
  showEndpoint,
  testEndpoint,
} from '../messages/webhooks/endpoints.ts'
import {
  endpointOfWebhook,
  WEBHOOK_STATUSES,
  type WebhookStatus,
  webhooksOf,
  webhooksToRequeue,
} from '../messages/webhooks/listing.sql.ts'
import { replayOf } from '../messages/webhooks/replay.ts'
import { showWebhook } from '../messages/webhooks/show.ts'
import type { Tx } from '../postgres/pool.ts'
import { commaList } from '../process/config.ts'
import { atMost, only, uuidArgument, words } from './input.ts'
import type { Verbs } from './noun.ts'
import { type RequeueFilter, requeueVerb } from './requeue.ts'
import { sinceFlag, type TimeRangeOptions, toRange, untilFlag } from './time-range.ts'

type Given = { url?: string; name?: string; types?: string; domain?: string }
type Replayed = TimeRangeOptions & { type?: string; failed?: boolean }

const fieldsOf = ({ url, name, types, domain }: Given): EndpointFields => ({
  url,
  name,
  types: types === undefined ? undefined : commaList(types),
  domain: domain === 'none' ? null : domain,
})

const withFields = (command: Command, usualName: string): Command =>
  command
    .option('--name <name>', `the name to display (default: ${usualName})`)
    .option(
      '--types <types>',
      `the events to send: '*' or some of ${[...WEBHOOK_TYPES, TEST_TYPE].join(',')}`,
    )

export const verbs: Verbs = (noun) => {
  const { verb, look, change, admin } = noun
  const add = verb(
    'add TEAM',
    'Add a webhook that receives the team’s events. Its secret is printed only once',
  )
    .requiredOption('--url <url>', 'an https:// URL')
    .option('--domain <name>', 'only events of emails from this domain', words)
  withFields(add, 'the host of the URL').action(
    change(
      (by, team: string, given: Given & { url: string }) =>
        addEndpoint({ ...by, allowed: admin.webhookNetworks() }, team, {
          ...fieldsOf(given),
          url: given.url,
        }),
      'secrets',
    ),
  )

  verb('list TEAM', 'List the webhooks of a team').action(look(listEndpoints))

  verb('show TEAM ID', 'Show a webhook: its state, its queue, and the latest attempts').action(
    look(showEndpoint),
  )

  withFields(verb('set TEAM ID', 'Change a webhook'), 'unchanged')
    .option('--url <url>', 'an https:// URL')
    .option('--domain <name>', 'only events of emails from this domain (“none” removes the filter)', words)
    .action(
      change((by, team: string, id: string, given: Given) =>
        changeEndpoint({ ...by, allowed: admin.webhookNetworks() }, team, id, fieldsOf(given)),
      ),
    )

  verb('rotate TEAM ID', 'Create a new secret. Events are also signed with the old one for 24 hours')
    .option('--now', 'stop signing with the old secret immediately')
    .action(
      change(
        (by, team: string, id: string, { now = false }: { now?: boolean }) =>
          rotateSecret(by, team, id, { at_once: now }),
        'secrets',
      ),
    )
  stateVerbs(noun)
  messageVerbs(noun)
}

type Listed = { status?: WebhookStatus; type?: string; limit: number }

/** Rejects a requeue to a disabled endpoint, because it would fail at once. @throws RequestError bad_request. */
async function refuseDisabled(tx: Tx, team: string, id: string | null | undefined): Promise<void> {
  const endpoint = id ? await endpointById(tx, team, id) : null
  if (endpoint) checkEnabled(endpoint)
}

/** Verbs for single messages of an endpoint. */
const messageVerbs: Verbs = (noun) => {
  const { verb, look, admin } = noun
  verb('messages TEAM ID', 'List the events sent to a webhook, newest first')
    .option('--status <status>', ...only(WEBHOOK_STATUSES))
    .option('--type <type>', 'only this type')
    .option('--limit <n>', ...atMost(100))
    .action(
      look(async (database, team_id: string, id: string, { limit, ...filter }: Listed) => {
        await requireEndpoint(database, team_id, id)
        return webhooksOf(database, { team_id, id }, filter, { limit })
      }),
    )

  verb('message TEAM ID EVENT', 'Show an event with its body, its attempts, and what it is waiting for', {
    EVENT: ['its event_id, which is in the header webhook-id', uuidArgument],
  }).action(
    look(async (tx, team: string, endpoint_id: string, event_id: string) =>
      showWebhook({ tx, now: await admin.now() }, team, { endpoint_id, event_id }),
    ),
  )

  const flags = (command: Command) =>
    command
      .option('--webhook <id>', 'only events to this webhook', uuidArgument)
      .option('--type <type>', 'only this type')
  const ids = async (
    tx: Tx,
    team: string,
    { webhook, type, force = false }: RequeueOptions,
  ): Promise<readonly string[]> => {
    await refuseDisabled(tx, team, webhook)
    return webhooksToRequeue(tx, team, { webhook, type, force })
  }
  const check = async (tx: Tx, ref: DeliveryRef) =>
    refuseDisabled(tx, ref.team_id, await endpointOfWebhook(tx, ref))
  const statuses = WEBHOOK_STATUSES
  const job: RequeueFilter['job'] = ({ webhook, type }: RequeueOptions, { picked }) => ({
    kind: 'webhook.requeue_matching',
    given: { ...picked, webhook, type },
  })
  const texts = {
    about: 'Requeue waiting webhook events: one, or all that match',
    one: 'only the event with this `id`',
    since: 'created at this time or later, such as 2026-01-31',
    force: 'also requeue failed events. To send delivered ones again, use `replay`',
  }
  requeueVerb(noun, { channel: WEBHOOK, statuses, texts, filter: { flags, ids, check, job } })
}

type RequeueOptions = { webhook?: string; type?: string; force?: boolean }

/** Verbs that change the state of an endpoint. */
const stateVerbs: Verbs = ({ verb, look, change, admin }) => {
  verb(
    'enable TEAM ID',
    'Enable a disabled webhook. To send the events it missed, use `replay --failed`',
  ).action(change(enableEndpoint))
  verb(
    'disable TEAM ID',
    `Disable a webhook. Its waiting events fail, and events of the next ${KEPT_DAYS} days are stored as failed`,
  ).action(change(disableEndpoint))
  verb('remove TEAM ID', 'Delete a webhook and all its events').action(
    change(async (by, team: string, id: string) => {
      const { url } = await removeEndpoint(by, team, id)
      return { id, url, removed: true }
    }),
  )
  verb('test TEAM ID', 'Send an event of type webhook.test to a webhook').action(
    change(async (by, team: string, id: string) => ({ id, ...(await testEndpoint(by, team, id)) })),
  )
  const replay = verb('replay TEAM ID', 'Send the events of a webhook again, with the same IDs and bodies')
  untilFlag(sinceFlag(replay, 'only events at this time or later'), 'only events before this time')
    .option('--type <type>', 'only this type')
    .option('--failed', 'only failed events')
    .action(
      look(async (database, team: string, id: string, { failed = false, type, ...range }: Replayed) => {
        const what = failed ? 'failed' : 'over'
        const given = await replayOf(database, team, id, { ...toRange(range), type, what })
        return admin.runBackgroundJob({ kind: 'webhook.replay', given, team_id: team })
      }),
    )
}
