/**
 * POST /hooks/relay: the events of the hosted relay that sends our mail. Posts are verified as the relay
 * signs them (relay-signatures.ts). Others return 401 and store nothing. Without SMTP_RELAY, all posts return 401.
 * Each event of a post becomes a raw report, and all are committed before the response.
 */

import { type StringSchema, string } from 'yup'
import { contentKey } from '../../db/delivery/reports/store.ts'
import { bearerToken, givenSecret, relayName, type SettingsOf } from '../../db/process/config.ts'
import { isOneOf } from '../../db/validation/keys.ts'
import { RELAYS, type Relay } from '../../db/validation/relays.ts'
import { publicRoutes } from '../http/route.ts'
import type { DeclaredHook, HookDeps } from './hook.ts'
import { storeReport } from './receive.ts'
import { notGenuine, parsePublicKey, RELAY_PROOFS, type RelayProof, unverified } from './relay-signatures.ts'

const publicKey = string().test(
  'public key',
  '${path} must be the verification key that SendGrid shows for its signed event webhook, in base64',
  (key) => key === undefined || parsePublicKey(key) !== null,
)

/** The format of each relay's secret. A password in a header must be hard to guess. */
const FORMS: Record<Relay, StringSchema<string | undefined>> = {
  mailgun: givenSecret,
  sendgrid: publicKey,
  postmark: bearerToken,
  brevo: bearerToken,
}

const isRelay = (name: unknown): name is Relay => isOneOf(RELAYS, name)

const settings = {
  SMTP_RELAY: relayName,
  /** Verifies the relay's posts. It is a signing key, a public key, or the password that the relay was given. */
  SMTP_RELAY_SECRET: string().when('SMTP_RELAY', ([relay], schema) => {
    if (!isRelay(relay)) return schema
    const missing = `\${path} is not set, but SMTP_RELAY is ${relay}. Set \${path}, because it verifies the reports of the relay`
    return FORMS[relay].required(missing)
  }),
}

/** The relay whose header is reserved, and how its posts are verified. */
type OpenRelay = { relay: Relay | null; proof: RelayProof }

function open({ SMTP_RELAY, SMTP_RELAY_SECRET }: SettingsOf<typeof settings>): { relay: OpenRelay } {
  const proof = SMTP_RELAY && SMTP_RELAY_SECRET && RELAY_PROOFS[SMTP_RELAY](SMTP_RELAY_SECRET)
  return { relay: { relay: SMTP_RELAY ?? null, proof: proof || unverified } }
}

const publicRoute = publicRoutes<HookDeps<ReturnType<typeof open>>>()

const routes = [
  publicRoute({
    method: 'POST',
    path: '/hooks/relay',
    async handle({ bytes, headers, now }, deps) {
      const { relay, proof } = deps.hooks.relay
      const { events, token } = await proof({ headers, bytes, now })
      if (relay === null) return { status: 200, body: { status: 'taken' } }
      const outcomes = await Promise.all(
        events.map((event) => {
          const body = Buffer.from(event)
          const report = { provider: relay, event_key: contentKey(body), body, received_at: now }
          return storeReport(deps, { ...report, token })
        }),
      )
      if (outcomes.includes('token_used')) throw notGenuine()
      return {
        status: 200,
        body: { status: outcomes.length === 0 || outcomes.includes('stored') ? 'taken' : 'repeated' },
      }
    },
  }),
]

export const RELAY_HOOK = {
  settings,
  switched_by: 'SMTP_RELAY',
  open,
  routes,
} as const satisfies DeclaredHook
