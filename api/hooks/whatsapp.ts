/**
 * GET and POST /hooks/whatsapp: the provider's handshake and its reports. /hooks/whatsapp/NUMBER is the same
 * for the app of a customer, which can only report on that number. The HMAC-SHA256 of a post's raw bytes is
 * verified with WHATSAPP_APP_SECRET or the number's app secret. Without a secret the response is 401. A post
 * is reduced to the necessary fields (cutPost), and stored before the response.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { contentKey } from '../../db/delivery/reports/store.ts'
import { RequestError } from '../../db/errors.ts'
import { cutPost, type HookScope } from '../../db/messages/whatsapp/cut-post.ts'
import { hookOfNumber, NUMBER_NAME } from '../../db/messages/whatsapp/number-hook.ts'
import { parseStopWords, stopWordsSetting } from '../../db/messages/whatsapp/stop-words.ts'
import { givenSecret, type SettingsOf } from '../../db/process/config.ts'
import { sameSecret } from '../http/auth.ts'
import type { Answer } from '../http/errors.ts'
import { publicRoutes, type Request } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import type { DeclaredHook, HookDeps } from './hook.ts'
import { takeReport } from './receive.ts'

/** The largest post, which is read before it is verified. Meta's posts have up to 3 MB, with thousands of statuses. */
const MAX_POST_BYTES = 3 * 1024 * 1024

const SIGNATURE = /^sha256=([0-9a-f]{64})$/i
const CHALLENGE = /^[\x21-\x7e]{1,256}$/

const notGenuine = () => new RequestError('unauthorized', TEXTS.metaOnly)

/** Returns the bytes of the signature. @throws RequestError unauthorized if the header isn't one */
function parseSignature(header: string | string[] | undefined): Buffer {
  const hex = typeof header === 'string' ? SIGNATURE.exec(header)?.[1] : undefined
  if (hex === undefined) throw notGenuine()
  return Buffer.from(hex, 'hex')
}

/** Returns the challenge. @throws RequestError insufficient_scope (403) unless mode and token match */
function readChallenge(query: URLSearchParams, verifyTokens: readonly string[]): string {
  const [mode, token, challenge] = ['hub.mode', 'hub.verify_token', 'hub.challenge'].map((name) => {
    const [value, ...others] = query.getAll(name)
    return others.length === 0 ? value : undefined
  })
  const fits = token !== undefined && verifyTokens.some((own) => sameSecret(token, own))
  if (mode === 'subscribe' && fits && challenge !== undefined && CHALLENGE.test(challenge)) return challenge
  throw new RequestError('insufficient_scope', TEXTS.verifyToken)
}

const settings = {
  /** The secret that signs the provider's reports. Without it POST /hooks/whatsapp rejects all posts. */
  WHATSAPP_APP_SECRET: givenSecret.when('WHATSAPP_VERIFY_TOKEN', ([other], schema) =>
    other
      ? schema.required(
          '${path} is not set, but WHATSAPP_VERIFY_TOKEN is. Set ${path}, because it verifies the reports',
        )
      : schema,
  ),
  /** The token that the provider sends in its handshake. Without it GET /hooks/whatsapp rejects all of them. */
  WHATSAPP_VERIFY_TOKEN: givenSecret,
  /** Words with which recipients opt out, in addition to ours. */
  WHATSAPP_STOP_WORDS: stopWordsSetting,
}

type Settings = SettingsOf<typeof settings>

/** The other half of the rule, because two fields of a schema can't depend on each other. */
const fault = ({ WHATSAPP_APP_SECRET: secret, WHATSAPP_VERIFY_TOKEN: verify }: Settings) =>
  secret === undefined || verify !== undefined
    ? null
    : {
        path: 'WHATSAPP_VERIFY_TOKEN',
        message: 'WHATSAPP_VERIFY_TOKEN is not set, but WHATSAPP_APP_SECRET is. The handshake needs both',
      }

const open = (given: Settings) => ({
  whatsapp_app_secret: given.WHATSAPP_APP_SECRET ?? null,
  whatsapp_verify_token: given.WHATSAPP_VERIFY_TOKEN ?? null,
  whatsapp_stop_words: parseStopWords(given.WHATSAPP_STOP_WORDS),
})

type Deps = HookDeps<ReturnType<typeof open>>

const publicRoute = publicRoutes<Deps>()

type HookRequest = Pick<Request, 'bytes' | 'headers' | 'now'>

const challenge = (query: URLSearchParams, verifyTokens: readonly string[]): Answer => ({
  status: 200,
  body: readChallenge(query, verifyTokens),
  headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
})

/** Stores what remains of a verified post. @param scope the number of the hook, null for any number */
async function takePost(
  deps: Deps,
  { bytes, headers, now }: HookRequest,
  { secret, scope }: { secret: string | Buffer | null; scope: HookScope | null },
): Promise<Answer> {
  const signature = parseSignature(headers['x-hub-signature-256'])
  if (secret === null) throw notGenuine()
  const body = await bytes(MAX_POST_BYTES)
  const expected = createHmac('sha256', secret).update(body).digest()
  if (!timingSafeEqual(signature, expected)) throw notGenuine()
  const cut = cutPost(body, deps.hooks.whatsapp_stop_words, scope)
  if (cut === null) throw new RequestError('bad_request', TEXTS.metaBody)
  for (const [kind, count] of Object.entries(cut.ignored))
    deps.metrics.count('heliograph_whatsapp_ignored_total', { kind }, count)
  if (cut.body === null) return { status: 200, body: { status: 'ignored' } }
  const provider = scope === null ? 'whatsapp' : 'whatsapp-number'
  return takeReport(deps, { provider, event_key: contentKey(cut.body), body: cut.body, received_at: now })
}

/** Returns the hook of the number in a path. @throws RequestError not_found */
async function requireHook({ database, secrets }: Deps, name = '') {
  const hook = NUMBER_NAME.test(name) ? await hookOfNumber(database, secrets, name) : null
  if (hook) return hook
  throw new RequestError('not_found', TEXTS.nothingHere)
}

const routes = [
  publicRoute({
    method: 'GET',
    path: '/hooks/whatsapp',
    async handle({ search }, { hooks: { whatsapp_verify_token: token } }) {
      return challenge(search(), token === null ? [] : [token])
    },
  }),
  publicRoute({
    method: 'POST',
    path: '/hooks/whatsapp',
    handle: (request, deps) =>
      takePost(deps, request, { secret: deps.hooks.whatsapp_app_secret, scope: null }),
  }),
  publicRoute({
    method: 'GET',
    path: '/hooks/whatsapp/:number',
    async handle({ search, params }, deps) {
      const { verify_tokens } = await requireHook(deps, params.number)
      return challenge(search(), verify_tokens)
    },
  }),
  publicRoute({
    method: 'POST',
    path: '/hooks/whatsapp/:number',
    async handle(request, deps) {
      const { app_secret: secret, scope } = await requireHook(deps, request.params.number)
      return takePost(deps, request, { secret, scope })
    },
  }),
]

export const WHATSAPP_HOOK = {
  settings,
  switched_by: 'WHATSAPP_APP_SECRET',
  fault,
  open,
  routes,
} as const satisfies DeclaredHook
