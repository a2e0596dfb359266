/** Verbs of `webhook`: a team's own servers, which get its events. */
import type { Command } from 'commander'
import { TEST_TYPE, WEBHOOK_TYPES } from '../channels/happenings/webhook-types.ts'
import { KEPT_DAYS } from '../channels/happenings/webhooks.sql.ts'
import { WEBHOOK } from '../channels/webhook.sql.ts'
import {
  addEndpoint,
  changeEndpoint,
  disableEndpoint,
  type EndpointFields,
  enableEndpoint,
  endpointOrRefusal,
  listEndpoints,
  removeEndpoint,
  rotateSecret,
  showEndpoint,
  testEndpoint,
} from '../messages/webhooks/endpoints.ts'
import {
  WEBHOOK_STATUSES,
  type WebhookStatus,
  webhooksOf,
  webhooksToRequeue,
} from '../messages/webhooks/listing.sql.ts'
import { replayOf } from '../messages/webhooks/replay.ts'
import { showWebhook } from '../messages/webhooks/show.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Admin } from './context.ts'
import { instant, oneOf, positive, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { requeueVerb } from './requeue.ts'

const LIST_LENGTH = 100

type Given = { url?: string; name?: string; types?: string; domain?: string }
type Replayed = { from?: Date; to?: Date; type?: string; failed?: boolean }

const fieldsOf = ({ url, name, types, domain }: Given): EndpointFields => ({
  url,
  name,
  types: types
    ?.split(',')
    .map((type) => type.trim())
    .filter((type) => type !== ''),
  domain: domain === 'none' ? null : domain,
})

const verbOf = (webhook: Command, name: string, about: string): Command =>
  webhook
    .command(name)
    .description(about)
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the webhook', uuid)

const withFields = (command: Command): Command =>
  command
    .option('--name <name>', 'what people call it; the host of its URL when absent')
    .option(
      '--types <types>',
      `the events that it gets: '*' or some of ${[...WEBHOOK_TYPES, TEST_TYPE].join(',')}`,
    )

export const verbs: Verbs = (webhook, admin) => {
  const add = webhook
    .command('add')
    .description('notify a server of the team of what happens; its secret is printed here and never again')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--url <url>', 'an https:// URL')
    .option('--domain <name>', 'only about emails from this domain')
  withFields(add).action(
    answer(async (team: string, given: Given & { url: string }) => {
      const secrets = await admin.secrets()
      const allowed = admin.webhookNetworks()
      return admin.transaction((at) =>
        addEndpoint({ ...at, secrets, allowed }, team, { ...fieldsOf(given), url: given.url }),
      )
    }),
  )

  webhook
    .command('list')
    .description('the webhooks of a team')
    .argument('<team>', 'id of the team', uuid)
    .action(answer(async (team: string) => listEndpoints(await admin.database(), team)))

  verbOf(webhook, 'show', 'a webhook: its state, what waits for it, and the latest tries').action(
    answer(async (team: string, id: string) => showEndpoint(await admin.database(), team, id)),
  )

  withFields(verbOf(webhook, 'set', 'change a webhook'))
    .option('--url <url>', 'an https:// URL')
    .option('--domain <name>', 'only about emails from this domain; none: about everything')
    .action(
      answer(async (team: string, id: string, given: Given) => {
        const allowed = admin.webhookNetworks()
        return admin.transaction((at) => changeEndpoint({ ...at, allowed }, team, id, fieldsOf(given)))
      }),
    )

  verbOf(webhook, 'rotate', 'give a webhook a new secret; the old one signs too for a day')
    .option('--now', 'the old one signs no more')
    .action(
      answer(async (team: string, id: string, { now = false }: { now?: boolean }) => {
        const secrets = await admin.secrets()
        return admin.transaction((at) => rotateSecret({ ...at, secrets }, team, id, now))
      }),
    )
  stateVerbs(webhook, admin)
  messageVerbs(webhook, admin)
}

type Listed = { status?: WebhookStatus; type?: string; limit: number }

/** What becomes of single messages to an endpoint. */
function messageVerbs(webhook: Command, admin: Admin): void {
  verbOf(webhook, 'messages', 'what was sent to a webhook, or is to be, newest first')
    .option('--status <status>', `only these: ${WEBHOOK_STATUSES.join(', ')}`, oneOf(WEBHOOK_STATUSES))
    .option('--type <type>', 'only of this type')
    .option('--limit <n>', 'how many at most', positive, LIST_LENGTH)
    .action(
      answer(async (team: string, id: string, { limit, ...filter }: Listed) => {
        const database = await admin.database()
        await endpointOrRefusal(database, team, id)
        return webhooksOf(database, { team_id: team, id }, filter, { limit })
      }),
    )

  verbOf(webhook, 'message', 'one of them with its body, its tries, and what it waits for while it is queued')
    .argument('<event>', 'its event_id: the header webhook-id', uuid)
    .action(
      answer(async (team: string, endpoint_id: string, event_id: string) => {
        const at = { tx: await admin.database(), now: await admin.now() }
        return showWebhook(at, team, { endpoint_id, event_id })
      }),
    )

  const flags = (command: Command) =>
    command.option('--webhook <id>', 'only to this one', uuid).option('--type <type>', 'only of this type')
  const ids = (tx: Tx, team: string, { webhook, type, force = false }: RequeueOptions) =>
    webhooksToRequeue(tx, team, { webhook, type, force })
  const statuses = WEBHOOK_STATUSES
  requeueVerb(webhook, admin, { channel: WEBHOOK, statuses, what: 'webhooks', filter: { flags, ids } })
}

type RequeueOptions = { webhook?: string; type?: string; force?: boolean }

/** What is done with an endpoint as it is. */
function stateVerbs(webhook: Command, admin: Admin): void {
  verbOf(
    webhook,
    'enable',
    'send a disabled webhook events from now on; `replay --failed` sends what it missed',
  ).action(answer((team: string, id: string) => admin.transaction((at) => enableEndpoint(at, team, id))))
  verbOf(
    webhook,
    'disable',
    `send a webhook nothing more; what waits for it fails, and what happens in ${KEPT_DAYS} days is kept as failed`,
  ).action(answer((team: string, id: string) => admin.transaction((at) => disableEndpoint(at, team, id))))
  verbOf(webhook, 'remove', 'forget a webhook and all messages to it').action(
    answer(async (team: string, id: string) => {
      const { url } = await admin.transaction((at) => removeEndpoint(at, team, id))
      return { id, url, removed: true }
    }),
  )
  verbOf(webhook, 'test', 'send a webhook a message of type webhook.test').action(
    answer(async (team: string, id: string) => ({
      id,
      ...(await admin.transaction((at) => testEndpoint(at, team, id))),
    })),
  )
  verbOf(webhook, 'replay', 'send a webhook its messages again: the same ids, the same bytes')
    .option('--from <time>', 'only what happened since', instant)
    .option('--to <time>', 'only what happened until then', instant)
    .option('--type <type>', 'only of this type')
    .option('--failed', 'only what failed')
    .action(
      answer(async (team: string, id: string, { failed = false, ...range }: Replayed) => {
        const what = failed ? 'failed' : 'over'
        const given = await replayOf(await admin.database(), team, id, { ...range, what })
        return admin.work({ kind: 'webhook.replay', given, team_id: team })
      }),
    )
}
