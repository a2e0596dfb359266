/**
 * POST /hooks/ses: what SES publishes through Amazon SNS. Topic and signature are verified first (sns.ts),
 * otherwise the response is 401. Then subscriptions are confirmed, and notifications are committed once per
 * SNS MessageId.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { string } from 'yup'
import { RequestError } from '../../db/errors.ts'
import { commaList, type SettingsOf } from '../../db/process/config.ts'
import type { Answer } from '../http/errors.ts'
import { publicRoutes } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import type { DeclaredHook, HookDeps } from './hook.ts'
import { takeReport } from './receive.ts'
import { createSns, type Sns } from './sns.ts'
import { parseEnvelope, type SnsEnvelope, TOPIC_ARN } from './sns-envelope.ts'

/** An SNS message has at most 256 KiB. Escapes in its JSON can make it several times as large. */
const MAX_POST_BYTES = 512 * 1024
/** SNS sends its JSON as text/plain. */
const TYPES = /^(text\/plain|application\/json) *(;|$)/i

const notGenuine = () => new RequestError('unauthorized', TEXTS.snsOnly)

function assertReadable(headers: IncomingHttpHeaders): void {
  const plain = (headers['content-encoding'] ?? 'identity') === 'identity'
  if (plain && TYPES.test(headers['content-type'] ?? '')) return
  throw new RequestError('unsupported_media_type', TEXTS.sesBodyType)
}

const settings = {
  /** The SNS topics that SES publishes to, separated by commas. Without them POST /hooks/ses rejects all posts. */
  SNS_TOPIC_ARNS: string().test(
    'topics',
    '${path} must be the ARNs of SNS topics, separated by commas',
    (value) => commaList(value).every((arn) => TOPIC_ARN.test(arn)),
  ),
}

const open = ({ SNS_TOPIC_ARNS }: SettingsOf<typeof settings>): { sns: Sns } => ({
  sns: createSns({ topics: commaList(SNS_TOPIC_ARNS) }),
})

type Deps = HookDeps<ReturnType<typeof open>>
const publicRoute = publicRoutes<Deps>()

const ACTIONS: Record<SnsEnvelope['Type'], (deps: Deps, post: Post) => Promise<Answer>> = {
  Notification: async (deps, { envelope, body, now }) =>
    await takeReport(deps, { provider: 'ses', event_key: envelope.MessageId, body, received_at: now }),
  async SubscriptionConfirmation({ hooks: { sns }, log }, { envelope }) {
    await sns.confirm(envelope)
    log.info({ topic: envelope.TopicArn }, 'confirmed the subscription to an SNS topic')
    return { status: 200, body: { status: 'confirmed' } }
  },
  async UnsubscribeConfirmation({ log }, { envelope }) {
    log.warn({ topic: envelope.TopicArn }, 'the subscription to an SNS topic was ended')
    return { status: 200, body: { status: 'noted' } }
  },
}

type Post = { envelope: SnsEnvelope; body: Buffer; now: Date }

const routes = [
  publicRoute({
    method: 'POST',
    path: '/hooks/ses',
    async handle({ bytes, headers, now }, deps) {
      // Without topics no post can be verified, so none is read.
      if (!deps.hooks.sns.listens) throw notGenuine()
      assertReadable(headers)
      const body = await bytes(MAX_POST_BYTES)
      const envelope = parseEnvelope(body)
      if (envelope === null) throw notGenuine()
      await deps.hooks.sns.authenticate(envelope, now)
      return ACTIONS[envelope.Type](deps, { envelope, body, now })
    },
  }),
]

export const SES_HOOK = {
  settings,
  switched_by: 'SNS_TOPIC_ARNS',
  open,
  routes,
} as const satisfies DeclaredHook
